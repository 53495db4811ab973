"""Published figures of an agent's trainings: a JSON file, and a Parquet file of its curves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.files import write_file
from data.results import Result, ResultFile
from pipelines.rl.cost import Cost

if TYPE_CHECKING:
    import polars as pl

COMMAND = "python -m pipelines.studies.agents.command"
PAGE = Path("docs/agents.md")
COLUMNS = ("return", "validation")
"""Columns of a curve: the mean return of the last 100 episodes of training, which explores, and
that of the greedy policy in validation. Both are rewards of whole episodes."""


class Played(Result):
    """What somebody got in the test episodes.

    Attributes
    ----------
    name, kind : str
        As in `pipelines.studies.environments.judge`.
    returns : list of float
        Mean reward of a step, for each episode.
    mbps, rtt_ms : float
        Means over episodes.
    """

    name: str
    kind: str
    returns: list[float]
    mbps: float
    rtt_ms: float


class Seed(Result):
    """One training and what its best network got.

    Attributes
    ----------
    steps, best_steps : int
        Those of the training, and those after which the network was best in validation.
    network : str
        SHA-256 of the best network's weights, by which a training of the same seed is recognised.
    played : Played
    cost : Cost or None
        None for a training that kept none.
    """

    steps: int
    best_steps: int
    network: str
    played: Played
    cost: Cost | None


class Estimate(Result):
    """A figure and the limits of its 95 % interval.

    Attributes
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float


class Beside(Result):
    """The agent beside a policy by hand, episode by episode.

    Attributes
    ----------
    name : str
        The best of its kind in these episodes.
    iqm : float
        Its own interquartile mean over episodes.
    difference : Estimate
        Interquartile mean of the agent's return less that policy's in the same episode.
    improvement : Estimate
        How likely a seed gets more than that policy in an episode; ties count half.
    """

    name: str
    iqm: float
    difference: Estimate
    improvement: Estimate


class Statistics(Result):
    """What all seeds give together.

    Attributes
    ----------
    iqm : Estimate
        Interquartile mean over seeds and episodes; whole seeds are drawn anew.
    stratified : Estimate
        The same, with seeds drawn anew for each episode by itself.
    beside : dict
        Kind of policy -> the agent beside the best of that kind; a kind that nobody plays is left
        out.
    next_seed : Estimate
        Mean over seeds of each seed's mean return, and the interval that one more training of
        another seed lands in with 95 %.
    """

    iqm: Estimate
    stratified: Estimate
    beside: dict[str, Beside]
    next_seed: Estimate


class Published(Result):
    """An agent's trainings.

    Attributes
    ----------
    agent : str
        As ``cczoo train`` takes it.
    problem : str
        Environment and scenarios of `pipelines.studies.environments.judge.PROBLEMS`.
    settings : dict
        What all seeds share: all but the seed.
    command : str
        What trains these seeds again.
    episodes, first : int
        How many test episodes, and the seed that their environments have.
    by_hand : list of Played
    seeds : dict
        Seed of the training -> what it gave.
    statistics : Statistics
    """

    agent: str
    problem: str
    settings: dict[str, Any]
    command: str
    episodes: int
    first: int
    by_hand: list[Played]
    seeds: dict[str, Seed]
    statistics: Statistics


def file(agent: str) -> ResultFile[Published]:
    """Where an agent's figures are, within the folder beside the page."""
    return ResultFile(f"{agent}.json", Published, f"{COMMAND} {agent}")


def agents(folder: Path) -> list[str]:
    """Agents of which something is published."""
    return sorted(path.stem for path in folder.glob("*.json"))


def curves_of(seeds: dict[int, list[dict[str, float]]]) -> pl.DataFrame:
    """Curves as a table: ``seed``, ``step`` and `COLUMNS`, null where a point lacks one.

    Parameters
    ----------
    seeds : dict
        Seed -> points of its ``curve.json``.
    """
    import polars as pl

    rows = [
        (seed, int(point["steps"]), *(_finite(point.get(name)) for name in COLUMNS))
        for seed, points in sorted(seeds.items())
        for point in points
    ]
    kinds = {"seed": pl.UInt32, "step": pl.UInt32} | dict.fromkeys(COLUMNS, pl.Float32)
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def write_curves(folder: Path, agent: str, table: pl.DataFrame) -> None:
    """Write an agent's curves, whole or not at all."""
    write_file(
        folder / f"{agent}.parquet", lambda part: table.write_parquet(part, statistics=False)
    )


def read_curves(folder: Path, agent: str) -> pl.DataFrame:
    """Read an agent's curves.

    Raises
    ------
    UserError
        When there are none, or the file is damaged or of another version.
    """
    import polars as pl

    path = folder / f"{agent}.parquet"
    if not path.is_file():
        raise UserError(f"{path}: missing: make it with `{COMMAND} {agent}`")
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path}: no Parquet ({error}): `{COMMAND} {agent}` makes it") from None
    if table.columns != ["seed", "step", *COLUMNS]:
        raise UserError(f"{path}: of another version of cczoo: make it with `{COMMAND} {agent}`")
    return table
