"""Choice of the general model, its verdicts on families left out, and what answers are worth."""

from __future__ import annotations

from typing import cast

from data.results import OrEmpty, Result, ResultFile
from models.sbd.accumulate import VerdictSettings
from models.sbd.results.accuracy import STEP, ValueRow
from models.stats.intervals import Interval


class Plan(Result):
    """The model chosen without one family of conditions: what was compared, and its verdicts.

    Attributes
    ----------
    chosen : str
        A candidate.
    merits : dict
        Candidate -> mean accuracy over the families.
    verdicts : dict
        Candidate -> calibration and memory, fitted on the same families.
    """

    chosen: str
    merits: dict[str, float]
    verdicts: dict[str, VerdictSettings]


class Choice(Plan):
    """``plus.json``: the model chosen for good, and the one chosen without each family."""

    outer: dict[str, Plan]


class Answers(Result):
    """How many windows of one class were answered SB, NSB or not at all."""

    SB: int
    NSB: int
    undecided: int


class Confusion(Result):
    """Windows by their class."""

    SB: Answers
    NSB: Answers


class Coverage(Result):
    """How much is answered at one level of confidence, and how much of that rightly."""

    confidence: float
    window_coverage: float | None
    window_accuracy: float | None
    connection_coverage: float | None
    connection_accuracy: float | None


class Honest(Result):
    """Verdicts on families left out, settled without the family they are about.

    ``chosen`` says for each family whose verdicts these are.
    """

    chosen: dict[str, str]
    window: Interval
    accumulated_window: Interval
    connection: Interval
    coverage: tuple[Coverage, ...]
    confusion: Confusion


class LeftOut(Result):
    """``lofo.json``: families of conditions, each left out of training once.

    Attributes
    ----------
    families : tuple of ValueRow
        Accuracies of every model, per family.
    nested : Honest or None
        Of the model that is chosen anew without each family.
    candidates : dict
        Candidate -> the same of it alone.
    """

    families: tuple[ValueRow, ...]
    nested: OrEmpty[Honest]
    candidates: dict[str, OrEmpty[Honest]]


class Bin(Result):
    """Windows whose predicted probability of SB lies between two limits."""

    low: float
    high: float
    mean_probability: float
    share_sb: float
    windows: int


class Reliability(Result):
    """A reliability diagram, with Brier score, expected calibration error and log loss."""

    bins: tuple[Bin, ...]
    brier: float
    ece: float
    log_loss: float


class Calibrated(Result):
    """Reliability of a model on families left out: raw, Platt's or isotonic."""

    model: str
    kind: str
    bins: tuple[Bin, ...]
    brier: float
    ece: float
    log_loss: float


_Choice = OrEmpty[Choice]
PLUS = ResultFile("plus.json", cast("type[Choice | None]", _Choice), STEP)
LOFO = ResultFile("lofo.json", LeftOut, STEP)
CALIBRATION = ResultFile("calibration.json", tuple[Calibrated, ...], STEP)
