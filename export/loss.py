"""Measures what an approximation of a model costs: how often the two decide differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.fixed import limits, to_integers
from export.ir import Form, Ints
from export.onnx.run import decided
from export.source import Source

RANDOM = 4096
APART = 0.01
Floats = NDArray[np.float64]
Decide = Callable[[Ints], Ints]


def disagreements(ours: Ints, theirs: Ints) -> dict[str, Any]:
    """Count and share of rows that two classifications differ on: int64 array [N] each."""
    differing = int((ours != theirs).sum())
    share = differing / len(ours) if len(ours) else 0.0
    return {"vectors": len(ours), "disagreements": differing, "share": share}


def apart(ours: Floats, theirs: Floats) -> Ints:
    """Rows in which real scores differ by more than a hundredth of their range.

    Parameters
    ----------
    ours, theirs : float64 array [N] or [N, labels]

    Returns
    -------
    int64 array [rows]
    """
    ours, theirs = (np.reshape(one, (len(one), -1)) for one in (ours, theirs))
    if not len(theirs):
        return np.zeros(0, dtype=np.int64)
    step = APART * np.maximum(np.ptp(theirs, axis=0), np.finfo(np.float32).eps)
    # Written so that a NaN counts as a difference.
    return np.flatnonzero(~(np.abs(ours - theirs) <= step).all(axis=1))


def real_scores(form: Form, x: Ints) -> Floats:
    """A form's scores in their own unit: int64 array [N, d] -> float64 array [N, labels]."""
    places: int = getattr(form, "places", 0)
    return np.reshape(form.evaluate(x).scores / 2.0**places, (len(x), form.outputs))


def measured(source: Source, ours: Decide, theirs: Decide, seed: int = 1) -> dict[str, Any]:
    """Disagreement of two policies on the stored observations and on random ones in range.

    Parameters
    ----------
    source : Source
        Gives features and stored observations.
    ours, theirs : callable
        Integer observations [N, d] -> classes [N].
    seed : int
        Seeds the random observations.

    Returns
    -------
    dict
        ``stored`` and ``random``, each as :func:`disagreements` returns it.
    """
    stored = to_integers(source.values, source.features)
    low, high = limits(source.features)
    x = np.random.default_rng(seed).integers(low, high, (RANDOM, len(low)), endpoint=True)
    return {
        "stored": disagreements(ours(stored), theirs(stored)),
        "random": disagreements(ours(x), theirs(x)),
    }


def size_of(answers: Floats, kind: str) -> float:
    """The size that errors of answers are divided by, for an output's kind.

    It is the largest of real scores, however small; of probabilities 1, or a margin above it.
    """
    largest = float(np.abs(answers).max(initial=0.0))
    if kind == "scores":
        return largest or 1.0
    return 1.0 if answers.ndim == 1 else max(1.0, largest)


def in_integers(
    source: Source, values: Floats, answers: Floats, truth: Ints | None = None
) -> dict[str, Any]:
    """The quantization error: what rounding to integers changed; nothing if there is no form.

    Parameters
    ----------
    source : Source
    values : float array [n, d]
        Observations.
    answers : float array [n] or [n, labels]
        What the trained model answers to them.
    truth : int array [n], optional
        Their true classes; adds accuracies.
    """
    from models.sbd.digits import FIGURE, bound

    if source.form is None:
        return {}
    integers = to_integers(values, source.features)
    if source.output.kind == "scores":
        found = real_scores(source.form, integers)
        largest = float(np.abs(found - answers).max()) / size_of(answers, "scores")
        differing = len(apart(found, answers))
        return {"rows": len(values), "disagreements": differing, "largest_error": bound(largest)}
    ours, theirs = source.form.evaluate(integers).classes, decided(answers, source.threshold)
    differing = int((ours != theirs).sum())
    error: dict[str, Any] = {
        "rows": len(values),
        "disagreements": differing,
        "disagreement_share": round(differing / len(values), FIGURE),
    }
    if truth is not None:
        error["accuracy_float"] = round(float((theirs == truth).mean()), FIGURE)
        error["accuracy_integer"] = round(float((ours == truth).mean()), FIGURE)
    return error
