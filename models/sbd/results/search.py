"""What ``cczoo train sbd search`` writes: how much features say, and hyperparameters."""

from __future__ import annotations

from data.results import Result, ResultFile

STEP = "cczoo train sbd search"
Setting = bool | int | float | str | None
"""A hyperparameter's value."""


class Ranked(Result):
    """A feature's mutual information with the label, in nats, over the seeds of the estimator."""

    feature: str
    mi: float
    low: float
    high: float
    rank: int


class Information(Result):
    """``mi.json``.

    Attributes
    ----------
    ranking : dict
        Family of features -> its features, the one that says most first.
    subsets : tuple
        The features of the top-1, top-2 ... subsets of the paper's family.
    """

    ranking: dict[str, tuple[Ranked, ...]]
    subsets: tuple[tuple[str, ...], ...]


class Tuned(Result):
    """The hyperparameters chosen for a classifier, with mean and deviation over the folds."""

    settings: dict[str, Setting]
    accuracy: float
    sd: float


MI = ResultFile("mi.json", Information, STEP)
BEST = ResultFile("best.json", dict[str, Tuned], STEP)
"""Classifier -> what was chosen for it."""
