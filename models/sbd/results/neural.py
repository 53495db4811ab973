"""What ``cczoo train sbd neural`` writes."""

from __future__ import annotations

from pydantic import JsonValue

from data.results import Result, ResultFile
from models.stats.intervals import Interval

COMMAND = "cczoo train sbd neural"


class Variant(Result):
    """Settings that were tried: mean accuracy over the splits of the choice, and on each."""

    merit: float
    splits: dict[str, float]


class Chosen(Result):
    """``choice.json``."""

    chosen: str
    variants: dict[str, Variant]


class Against(Result):
    """Another model on the same windows; differences are neural less other, paired."""

    window: Interval
    connection: Interval
    window_difference: Interval
    connection_difference: Interval


class Compared(Result):
    """The network under one protocol, in all and per case or family, beside other models."""

    protocol: str
    splits: int
    seeds: int
    windows: int
    connections: int
    window: Interval
    sb: Interval
    nsb: Interval
    connection: Interval
    by: dict[str, float]
    against: dict[str, Against]


class Measured(Result):
    """``neural.json``.

    Attributes
    ----------
    settings : dict
        Of the network, as they were: an older version may have had others.
    data_hash : str
        Of the table.
    windows, connections : int
        Of the table.
    choice : Chosen or None
        Of the search, where one was made.
    protocols : tuple of Compared
    """

    settings: dict[str, JsonValue]
    data_hash: str
    windows: int
    connections: int
    choice: Chosen | None
    protocols: tuple[Compared, ...]


class Point(Result):
    """One epoch of the learning curve; losses are cross-entropies in nats, None where infinite."""

    epoch: int
    loss: float | None
    validation_loss: float | None
    validation_accuracy: float


CHOICE = ResultFile("choice.json", Chosen, COMMAND + " search")
NEURAL = ResultFile("neural.json", Measured, COMMAND + " protocol")
CURVE = ResultFile("curve.json", tuple[Point, ...], COMMAND + " fit")
