"""Files that a judged training leaves: its verdict, its curve, and a run beside CUBIC."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from data.results import Result, ResultFile


class Row(Result):
    """What a policy got: the mean reward of a step over episodes, with its 95 % interval.

    Attributes
    ----------
    policy, kind : str
        Its name, and random, untrained, constant, script or agent.
    episodes : int
        Played by it; baselines of which others are better play a part of all.
    mean, low, high : float
    mbps, rtt_ms : float
        Goodput of the agents' flows together, and the mean RTT of their ACKs.
    """

    policy: str
    kind: str
    episodes: int
    mean: float
    low: float
    high: float
    mbps: float
    rtt_ms: float


class Over(Result):
    """The agent less another policy, paired by episode: mean and 95 % interval.

    Attributes
    ----------
    policy : str
        The other one.
    mean, low, high : float
    beaten : bool
        Whether all of the interval is above 0.
    """

    policy: str
    mean: float
    low: float
    high: float
    beaten: bool


class Verdict(Result):
    """Content of ``verdict.json``.

    Attributes
    ----------
    agent, sampler : str
        Who was trained, and in which scenarios.
    seeds : tuple of int
        Trainings; an episode counts with the mean over them.
    steps, episodes : int
        Trained, and judged.
    cpu_s : float
        Processor time of all trainings, their validations included.
    command : str
        What began the first training.
    best_steps : tuple of int
        Steps after which each training's network was the best in validation; it is judged.
    settings : dict
        All settings of the trainings, but for the seed.
    rows : tuple of Row
    over : dict
        ``random``, ``untrained``, ``constant`` and ``script`` -> the agent beside the best of that
        kind; None if there is none.
    met : bool
        Whether random actions, the untrained network and the best constant are beaten.
    text : tuple of str
        The same in words, a line each.
    """

    format: Literal[1]
    agent: str
    sampler: str
    seeds: tuple[int, ...]
    steps: int
    episodes: int
    cpu_s: float
    command: str
    best_steps: tuple[int, ...]
    settings: dict[str, JsonValue]
    rows: tuple[Row, ...]
    over: dict[str, Over | None]
    met: bool
    text: tuple[str, ...]


class Point(Result):
    """A point of a learning curve: mean rewards of a step.

    Attributes
    ----------
    steps : int
    reward : float or None
        While training, exploring included; None before an episode has ended.
    validation : float or None
        With the best actions in the validation's episodes; None between two validations.
    """

    steps: int
    reward: float | None
    validation: float | None


class Curve(Result):
    """Content of ``curve.json``: how the first seed learned.

    Attributes
    ----------
    seed : int
    points : tuple of Point
    levels : dict
        Kind of a policy -> what the best of that kind gets in the validation's episodes.
    """

    seed: int
    points: tuple[Point, ...]
    levels: dict[str, float]


class Series(Result):
    """One control's run, a value per interval.

    Attributes
    ----------
    time_s : tuple of float
        Ends of the intervals.
    mbps, rtt_ms : tuple
        Goodput of the flows under test together, and their ACKs' mean RTT; None without an ACK.
    windows : tuple of tuple of int
        A series for each subflow (segments).
    """

    time_s: tuple[float, ...]
    mbps: tuple[float, ...]
    rtt_ms: tuple[float | None, ...]
    windows: tuple[tuple[int, ...], ...]


class Trajectory(Result):
    """Content of ``trajectory.json``: the same scenario and seed under several controls."""

    scenario: str
    title: str
    seed: int
    runs: dict[str, Series]


_MADE_BY = "dvc repro agent-tcco agent-nuwa agent-macc"
VERDICT = ResultFile("verdict.json", Verdict, _MADE_BY)
CURVE = ResultFile("curve.json", Curve, _MADE_BY)
TRAJECTORY = ResultFile("trajectory.json", Trajectory, _MADE_BY)
FOLDER = "agents"
"""Below ``reports``: a folder for each agent."""
SHOWN: dict[str, tuple[str, str]] = {
    "tcco": ("tcco-fig9a", ""),
    "nuwa": ("nuwa-table1", ""),
    "macc": ("macc-fig4", "droptail"),
}
"""Agent -> the scenario of its paper, and the variant, in which its trajectory is shown."""
