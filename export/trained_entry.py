"""An entry of what any family of models has trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data.errors import UserError
from export.description import Description, describe
from export.fitted import source_of_fitted
from export.stored_test import test_file
from models.sbd.digits import rounded
from models.trained import Trained


def write_trained(trained: Trained, card: str, zoo: Path | None = None) -> Path:
    """Lower a trained model, convert it to ONNX and write its entry; returns the directory.

    Parameters and errors are those of :func:`describe_trained`; ``zoo`` is where it is written,
    ``models/trained`` by default.
    """
    return describe_trained(trained, card).write(zoo)


def describe_trained(trained: Trained, card: str) -> Description:
    """Lower a trained model, convert it to ONNX and say what its entry holds.

    Parameters
    ----------
    trained : Trained
    card : str
        For ``card.md``, see :mod:`models.card`.

    Raises
    ------
    UserError
        When no observation is finite, a regressor's outputs aren't as many as its labels, or the
        ONNX form's answers are too far from the model's.
    """
    values = np.asarray(trained.observations, dtype=np.float64)
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        raise UserError(
            f"model {trained.name!r}: no row of the training table is finite in all features"
        )
    truth = None if trained.labels is None else np.asarray(trained.labels)[finite]
    source = source_of_fitted(
        trained.name, trained.model, trained.features, trained.meta, values[finite], truth
    )
    more = {**trained.files, **test_file(trained.test, source)}
    return describe(source, trained.meta, rounded(trained.metrics), card, more=more)
