"""Defines the intermediate form: what a model means once its features are integers.

A form answers an integer observation with one or more integer scores and a class. ``evaluate`` is
that meaning: every target is compared with it, and it is written for being read rather than for
speed. With one score for two labels the class is 1 (``labels[1]``) if the score is above
``decision_threshold`` and 0 otherwise; else there is one score per label, and the class is the
index in ``labels`` of the first largest score. The kinds of forms are the modules of
:mod:`export.forms`. Files and generated code call the decision threshold ``cut``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from export.fixed import INT32_MAX, INT32_MIN
from features.spec import Feature

Ints = NDArray[np.int64]

MAX_FEATURES = 1024


class Verdicts(NamedTuple):
    """Answers of a form or of a target.

    ``classes`` is an int64 array [N]; ``scores`` is an int64 array [N], or [N, outputs] if there
    are several.
    """

    classes: Ints
    scores: Ints


class Form(Protocol):
    """What every kind of form has; the dataclasses in :mod:`export.forms` are frozen."""

    @property
    def kind(self) -> str:
        """Key in :data:`export.forms.FORMS`."""
        ...

    @property
    def features(self) -> tuple[Feature, ...]:
        """Columns of an observation."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""
        ...

    @property
    def decision_threshold(self) -> int:
        """The score above which the class is 1, of a form with one score."""
        ...

    @property
    def outputs(self) -> int:
        """Number of scores."""
        ...

    def evaluate(self, x: Ints) -> Verdicts:
        """Answers on observations within 32 bits (int64 array [N, d])."""
        ...


def checked(x: Ints, features: tuple[Feature, ...]) -> Ints:
    """``x`` as int64 array [N, d]; ValueError if it isn't 32-bit integers of ``d`` columns."""
    x = np.asarray(x)
    if x.dtype.kind not in "iu" or x.ndim != 2 or x.shape[1] != len(features):
        raise ValueError(f"integers [N, {len(features)}] expected, not {x.dtype} {x.shape}")
    if x.size and (x.min() < INT32_MIN or x.max() > INT32_MAX):
        raise ValueError("observations must fit 32 bits: clip them to the features' ranges")
    return x.astype(np.int64)


def verdicts(scores: Ints, labels: tuple[str, ...], decision_threshold: int) -> Verdicts:
    """Verdicts of scores (int64 array [N, outputs]): one for two labels, or one per label."""
    if scores.shape[1] > 1:
        return largest(scores)
    only = scores[:, 0]
    return (
        above_threshold(only, decision_threshold)
        if len(labels) == 2
        else Verdicts(np.zeros_like(only), only)
    )


def above_threshold(scores: Ints, decision_threshold: int) -> Verdicts:
    """Verdicts of a form with one score, int64 array [N]."""
    return Verdicts((scores > decision_threshold).astype(np.int64), scores)


def largest(scores: Ints) -> Verdicts:
    """Verdicts of a form with several scores, int64 array [N, outputs]; the first largest wins."""
    return Verdicts(scores.argmax(axis=1).astype(np.int64), scores)
