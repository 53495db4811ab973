"""Makes entries of the zoo: a fitted estimator is lowered, converted and kept with its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from export.description import Description
    from features.spec import Feature
    from models.sbd.windows import Windows


def write_entry(
    name: str,
    estimator: Any,
    features: Sequence[Feature],
    meta: Mapping[str, Any],
    vectors: NDArray[np.float64],
    metrics: Mapping[str, Any],
    card: str,
    *,
    labels: NDArray[np.int64] | None = None,
    test: Windows | None = None,
    reference: bytes | None = None,
    zoo: Path | None = None,
) -> Path:
    """Lower a fitted estimator, convert it to ONNX and keep everything in the zoo.

    Parameters and errors are those of :func:`describe_fitted`, and

    Parameters
    ----------
    zoo : Path, optional
        Where to write it, ``models/trained`` by default.

    Returns
    -------
    Path
        The entry's directory.
    """
    described = describe_fitted(
        name, estimator, features, meta, vectors, metrics, card,
        labels=labels, test=test, reference=reference,
    )  # fmt: skip
    return described.write(zoo)


def describe_fitted(
    name: str,
    estimator: Any,
    features: Sequence[Feature],
    meta: Mapping[str, Any],
    vectors: NDArray[np.float64],
    metrics: Mapping[str, Any],
    card: str,
    *,
    labels: NDArray[np.int64] | None = None,
    test: Windows | None = None,
    reference: bytes | None = None,
) -> Description:
    """As :func:`export.trained_entry.describe_trained`, of a classifier's parts one by one.

    Parameters
    ----------
    name : str
        The zoo's name, such as ``smartsbd-dt``.
    estimator : fitted scikit-learn classifier or regressor
        Of two classes, the larger is ``labels[1]``; of more, classes are labels or their indices;
        a regressor has an output per label. Scalers in a ``Pipeline`` and, of two classes, a
        ``CalibratedClassifierCV(ensemble=False)`` are understood.
    features : sequence of Feature
        The columns that it was fitted on, in order.
    meta : mapping
        Fields of :class:`models.meta.Meta` that only training knows: ``family`` at least
        (:class:`models.origin.Origin` gives the usual ones); ``version``, ``git_commit``,
        ``threshold``, ``calibration``, ``accumulation``, ``labels``, ``output``.
    vectors : float64 array [N, d]
        Observations, best the whole training table: the loss to integers is measured on all of
        them, and an even sample of their fixed-point values is kept with the estimator's answers.
    metrics : mapping
        For ``metrics.json``.
    card : str
        For ``card.md``, see :mod:`models.card`.
    labels : int64 array [N], optional
        True classes of ``vectors``; adds accuracies to the measured loss.
    test : Windows, optional
        Labelled rows that training didn't see, for ``test.json``.
    reference : bytes, optional
        ``reference.json``: :func:`models.sbd.drift.reference.dumps`.

    Raises
    ------
    UserError
        When ``vectors`` hold no finite row, a regressor's outputs aren't as many as its labels, or
        the ONNX form's answers are too far from the estimator's.
    """
    from export.trained_entry import describe_trained
    from models.sbd.drift import reference as references
    from models.sbd.evaluate import testset
    from models.trained import Trained

    trained = Trained(
        name=name,
        model=estimator,
        features=features,
        meta=meta,
        observations=vectors,
        metrics=metrics,
        labels=labels,
        test=None if test is None else testset.as_test(test, features),
        files={} if reference is None else {references.FILE: reference},
    )
    return describe_trained(trained, card)
