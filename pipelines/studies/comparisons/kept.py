"""Figures of a group's trainings as they are kept, from which the page is written."""

from __future__ import annotations

from typing import Any

from data.results import Result, ResultFile

COMMAND = "python -m pipelines.studies.comparisons.command"


class Trained(Result):
    """One training and what its best network got in the test episodes.

    Attributes
    ----------
    returns : list of float
        Mean reward of a step, for each episode.
    mbps, rtt_ms : float
        Means over episodes.
    cpu_s : float or None
        Processor time of the training.
    steps : list of int
        Where it was validated.
    validation : list of float
        Mean reward of a step there, greedily.
    """

    returns: list[float]
    mbps: float
    rtt_ms: float
    cpu_s: float | None
    steps: list[int]
    validation: list[float]


class Entry(Result):
    """An agent or a comparison.

    Attributes
    ----------
    settings : dict
        What all its seeds share.
    own_reward : bool
        Whether it has an environment of its own, so that its returns say nothing beside others'.
    seeds : dict
        Seed -> training.
    """

    settings: dict[str, Any]
    own_reward: bool
    seeds: dict[str, Trained]


class Compared(Result):
    """A group.

    Attributes
    ----------
    group : str
        A key of `pipelines.studies.comparisons.groups.GROUPS`.
    episodes : int
        Test episodes, the same for everybody.
    entries : dict
        Name -> entry, the agent first.
    """

    group: str
    episodes: int
    entries: dict[str, Entry]


def file(group: str) -> ResultFile[Compared]:
    """Where a group's figures are, within the folder beside the page."""
    return ResultFile(f"{group}.json", Compared, f"{COMMAND} {group}")
