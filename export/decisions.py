"""What an entry decides on observations: by its ONNX file, by its integers, as it is deployed.

Decisions are indices of labels, int64 array [n], or where the model's output is real scores those,
float64 array [n, labels].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.fixed import to_integers
from export.ir import Form
from export.loss import real_scores
from export.onnx.run import decided, predict
from export.source import Source, source_of
from models.store import ZooModel

Floats = NDArray[np.float64]


def of_onnx(source: Source, values: Floats) -> NDArray[Any]:
    """By the ONNX file, on float64 array [n, d]; a recurrent model takes them as one sequence."""
    answers = predict(source.onnx, values, source.name)
    return answers if source.output.kind == "scores" else decided(answers, source.threshold)


def of_form(form: Form, source: Source, values: Floats) -> NDArray[Any]:
    """By the integer form, on the observations' fixed-point values."""
    integers = to_integers(values, source.features)
    if source.output.kind == "scores":
        return real_scores(form, integers)
    return form.evaluate(integers).classes


def deployed(entry: ZooModel, values: Floats) -> NDArray[Any]:
    """As a kernel carries it out: by integers where the entry has them, else by ONNX."""
    source = source_of(entry)
    if source.form is not None:
        return of_form(source.form, source, values)
    return of_onnx(source, values)
