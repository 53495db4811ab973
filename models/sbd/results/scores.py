"""Every figure of each model, and how long a verdict takes: of ``cczoo train sbd protocol``."""

from __future__ import annotations

from data.results import Result, ResultFile
from models.sbd.results.accuracy import STEP
from models.sbd.results.verdicts import Confusion, Reliability
from models.stats.intervals import Interval

Share = float | None
"""Of windows or connections; None of nothing."""


class Part(Result):
    """Accuracy on the rows that have one value of an attribute."""

    accuracy: Share
    windows: int
    connection_accuracy: Share
    connections: int


class Intervals(Result):
    """The accuracies with their intervals over connections."""

    accuracy: Interval
    sb_accuracy: Interval
    nsb_accuracy: Interval
    connection_accuracy: Interval


class Accumulated(Result):
    """Accuracies of verdicts that add up over the windows of a connection."""

    accuracy: Share
    undecided_windows: Share
    decided_accuracy: Share
    undecided_connections: Share
    decided_connection_accuracy: Share
    confusion: Confusion


class Score(Result):
    """Everything about labelled rows; see :func:`models.sbd.evaluate.scores.score`."""

    accuracy: Share
    sb_accuracy: Share
    nsb_accuracy: Share
    windows: int
    connection_accuracy: Share
    connections: int
    by: dict[str, dict[str, Part]]
    intervals: Intervals
    confusion: Confusion
    accumulated: Accumulated
    calibration: Reliability | None


class Quantiles(Result):
    """Seconds within which a tenth, half and nine tenths get there, and how many ever do."""

    p10: float
    median: float
    p90: float
    share: float


class Delays(Result):
    """Time to a verdict on one data set; None where no connection gets there.

    ``window_s`` and ``first_s`` are the length of the first window, ``confident_s`` the time of
    the first confident verdict, ``stable_s`` that from which on the verdict is right,
    ``from_start_s`` the end of the first window since the connection's first event.
    """

    dataset: str
    connections: int
    window_s: Quantiles | None = None
    first_s: Quantiles | None = None
    confident_s: Quantiles | None = None
    stable_s: Quantiles | None = None
    from_start_s: Quantiles | None = None


CONFUSION = ResultFile("confusion.json", dict[str, dict[str, Score]], STEP)
"""Model -> protocol -> its score."""
DELAY = ResultFile("delay.json", dict[str, tuple[Delays, ...]], STEP)
"""Model -> a row per data set."""
