"""What ``cczoo train sbd fit`` writes beside the entries."""

from __future__ import annotations

from pydantic import Field

from data.results import Result, ResultFile
from models.stats.intervals import Interval

STEP = "cczoo train sbd fit"


class OfSplits(Result):
    """A model on shuffle splits of connections."""

    window: Interval
    connection: Interval
    sb: Interval
    nsb: Interval


class OfValue(Result):
    """A model on one case or family."""

    window: Interval
    connection: Interval
    windows: int
    connections: int


class OfValues(Result):
    """A model on rows that it has seen none like, in all and by case or family."""

    by: dict[str, OfValue]
    window: Interval
    connection: Interval
    windows: int
    connections: int


class Means(Result):
    """The two figures that stand for a protocol."""

    window: float | None
    connection: float | None


class Metrics(Result):
    """A kept model's accuracies by protocol; what wasn't measured isn't there."""

    within: OfSplits | None = None
    mixed: OfSplits | None = None
    unseen: OfValues | None = None
    unseen_varied: OfValues | None = Field(None, alias="unseen-varied")
    transfer: OfValues | None = None
    family: OfValues | None = None
    headline: dict[str, Means]


METRICS = ResultFile("metrics.json", dict[str, Metrics], STEP)
"""Kept model -> its accuracies."""
HEADLINE = ResultFile("headline.json", dict[str, float], STEP)
"""``model.protocol.window`` -> accuracy, for trackers."""
