"""What a family gets to train with, and what it hands over of each model that it has trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.strict import Strict
from features.spec import Feature

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""Shows how far a loop is: the items, what is done with them, how many there are."""


@dataclass(frozen=True)
class Job:
    """Where a training reads and writes, and its settings.

    Attributes
    ----------
    data : Path
        What it learns from.
    out : Path
        Directory for result tables.
    params : Strict
        The family's own settings, seed included.
    command : str
        The command that is running, for the card and the entry.
    progress : function
        Shows how far long work is.
    """

    data: Path
    out: Path
    params: Strict
    command: str
    progress: Progress


@dataclass(frozen=True)
class Test:
    """A test that is stored with an entry.

    Attributes
    ----------
    file : str
        Its name within the entry.
    observations : float64 array [N, d]
        That training didn't see, in the features' own units.
    content : function
        The file's bytes, given what each file of the entry decides on the observations: name ->
        answers as :data:`models.judged.Answer` has them.
    """

    file: str
    observations: NDArray[np.float64]
    content: Callable[[Mapping[str, NDArray[Any]]], bytes]

    __test__ = False


@dataclass(frozen=True)
class Trained:
    """A trained model with all that its entry tells, but what export adds to it.

    Attributes
    ----------
    name : str
        Of the entry.
    model : estimator
        Fitted, as scikit-learn has them.
    features : sequence of Feature
        Its columns.
    meta : mapping
        More fields of :class:`models.meta.Meta`: family, data_hash, created_by, labels, output …
    observations : float64 array [n, d]
        From the training data: some are kept with the model's answers.
    metrics : mapping
        ``metrics.json``; ``headline`` has the few figures that a registry compares.
    labels : int64 array [n], optional
        Classes of the observations.
    test : Test, optional
        What is stored so that the entry can be tested again.
    files : mapping
        More files of the entry: name -> content.
    card : mapping
        What the family's own ``card`` says besides.
    """

    name: str
    model: Any
    features: Sequence[Feature]
    meta: Mapping[str, Any]
    observations: NDArray[np.float64]
    metrics: Mapping[str, Any]
    labels: NDArray[np.int64] | None = None
    test: Test | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    card: Mapping[str, Any] = field(default_factory=dict)
