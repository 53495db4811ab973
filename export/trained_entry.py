"""An entry of what any family of models has trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data.errors import UserError
from export.decisions import of_form, of_onnx
from export.description import describe
from export.fitted import source_of_fitted
from export.source import Source
from features.grid import on_grid
from models.sbd.digits import rounded
from models.trained import Trained


def write_trained(trained: Trained, card: str, zoo: Path | None = None) -> Path:
    """Lower a trained model, convert it to ONNX and write its entry; returns the directory.

    Parameters
    ----------
    trained : Trained
    card : str
        For ``card.md``.
    zoo : Path, optional
        Where to write it, ``models/trained`` by default.

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
            f"model {trained.name!r}: no row of the training data is finite in all features"
        )
    truth = None if trained.labels is None else np.asarray(trained.labels)[finite]
    source = source_of_fitted(
        trained.name, trained.model, trained.features, trained.meta, values[finite], truth
    )
    more = {**trained.files, **_test(trained, source)}
    return describe(source, trained.meta, rounded(trained.metrics), card, more=more).write(zoo)


def _test(trained: Trained, source: Source) -> dict[str, bytes]:
    """The stored test with what each form of the model decides on its observations."""
    test = trained.test
    if test is None or not len(test.observations):
        return {}
    values = on_grid(test.observations, source.features)
    answers = {"model.onnx": of_onnx(source, values)}
    if source.form is not None:
        answers["model.json"] = of_form(source.form, source, values)
    return {test.file: test.content(answers)}
