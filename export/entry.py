"""Makes entries of the zoo: a fitted estimator is lowered, converted and kept with its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.description import Description, describe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from export.source import Source
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
    """Lower a fitted estimator, convert it to ONNX and say what its entry holds.

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
    import numpy as np

    from export.fitted import source_of_fitted
    from models.sbd import digits
    from models.sbd.drift import reference as references
    from models.sbd.evaluate import testset

    values = np.asarray(vectors, dtype=np.float64)
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        raise UserError(f"model {name!r}: no row of the training table is finite in all features")
    truth = None if labels is None else np.asarray(labels)[finite]
    source = source_of_fitted(name, estimator, features, meta, values[finite], truth)
    more = {} if reference is None else {references.FILE: reference}
    if test is not None and len(test):
        more[testset.FILE] = test_file(source, test)
    return describe(source, meta, digits.rounded(metrics), card, more=more)


def test_file(source: Source, test: Windows) -> bytes:
    """``test.json``: labelled rows that training didn't see, with the answers of each form."""
    from export.fixed import to_integers
    from export.onnx.run import decided, predict
    from models.sbd import digits
    from models.sbd.evaluate import testset

    test = digits.stored(test, source.features)
    columns = [feature.name for feature in source.features]
    rows = test.matrix(columns)
    answers = {"model.onnx": decided(predict(source.onnx, rows, source.name), source.threshold)}
    if source.form is not None:
        integers = to_integers(rows, source.features)
        answers["model.json"] = source.form.evaluate(integers).classes
    return testset.dump(test, columns, answers)
