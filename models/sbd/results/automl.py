"""What ``cczoo train sbd auto`` writes: of one search, and of Table 5's splits."""

from __future__ import annotations

from pydantic import JsonValue

from data.results import Result, ResultFile
from models.sbd.results.accuracy import SiteRow
from models.sbd.results.groups import LeftOut
from models.stats.intervals import Counted, Interval

COMMAND = "cczoo train sbd auto"
Number = int | float


class Improvement(Result):
    """A configuration that was better than all before it; seconds since the search began."""

    seconds: Number
    loss: float
    learner: str


class Found(Result):
    """A model of a search's result: its weight in it, and its loss in validation."""

    name: str
    learner: str
    weight: Number
    loss: float | None


class Member(Found):
    """The same with its settings, accuracy, and the entry it became or why it became none."""

    settings: dict[str, JsonValue]
    reason: str
    accuracy: dict[str, Counted]
    entry: str | None
    form: str | None
    why: str


class Kept(Result):
    """The member that became ``model``."""

    member: str
    entry: str
    form: str | None


class Searched(Result):
    """``automl.json`` of a search; accuracies are by test, on rows that it didn't learn from."""

    family: str
    seconds: Number
    seed: int
    jobs: int
    windows: int
    connections: int
    dropped: LeftOut
    accuracy: dict[str, Counted]
    backend: str
    version: str
    evaluated: int
    failed: dict[str, int]
    wall_s: Number
    cpu_s: Number
    about: dict[str, JsonValue]
    members: tuple[Member, ...]
    trajectory: tuple[Improvement, ...]
    model: Kept | None


class SplitMember(Found):
    """A member of the result on one split; ``reason`` says why it can't be exported."""

    reason: str


class SplitDone(Result):
    """``splits/BACKEND-FAMILY-SPLIT.json``: a search on one split, and what it was asked for.

    ``rows`` is a hash of the rows tested on, ``probability`` the answers to them.
    """

    split: str
    rows: str
    probability: tuple[float, ...]
    version: str
    about: dict[str, JsonValue]
    evaluated: int
    failed: dict[str, int]
    wall_s: Number
    cpu_s: Number
    load_before: Number
    trajectory: tuple[Improvement, ...]
    members: tuple[SplitMember, ...]
    backend: str
    family: str
    seconds: Number
    trials: int | None
    seed: int
    jobs: int
    data_hash: str


class Run(Result):
    """A backend on all splits that are done; ``differences`` are accuracies less a peer's."""

    seconds: Number
    trials: int | None
    jobs: int
    seed: int
    version: str
    about: dict[str, JsonValue]
    data_hash: str
    splits: int
    evaluated: tuple[int, ...]
    failed: tuple[int, ...]
    wall_s: tuple[Number, ...]
    cpu_s: tuple[Number, ...]
    load_before: tuple[Number, ...]
    members: tuple[tuple[SplitMember, ...], ...]
    differences: dict[str, Interval]


class Table5(Result):
    """``automl.json`` of ``auto-protocol``: the paper's figures, ours and what they cost."""

    paper: dict[str, float]
    runs: dict[str, Run]
    rows: tuple[SiteRow, ...]


SEARCHED = ResultFile("automl.json", Searched, COMMAND)
AUTO_TABLE5 = ResultFile("automl.json", Table5, COMMAND + "-protocol")
SPLIT = ResultFile("splits/NAME.json", SplitDone, COMMAND + "-protocol")
