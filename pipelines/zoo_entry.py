"""Files that every entry of the zoo has, whatever kind of model it is."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STORED_VECTORS = 256
CONTENTS = 64
"""Of an entry whose observations are whole series."""


def sample(values: NDArray[np.float64], count: int = STORED_VECTORS) -> NDArray[np.float64]:
    """An even sample of rows [n, d], at most ``count`` of them."""
    import numpy as np

    return values[np.unique(np.linspace(0, len(values) - 1, count).astype(np.int64))]


def vectors_file(values: NDArray[np.float64], probability: NDArray[np.float64]) -> bytes:
    """``vectors.json``: rows [n, d], one a line, with the trained model's answers [n]."""
    from models.sbd.digits import probabilities

    rows = ",\n  ".join(json.dumps(row) for row in values.tolist())
    answers = json.dumps(probabilities(probability).tolist())
    return f'{{\n "probability": {answers},\n "values": [\n  {rows}\n ]\n}}\n'.encode()


def made_by(arguments: Sequence[str] | None = None) -> str:
    """The command that is running, as an entry tells it: absolute paths by their last name alone.

    Where a machine keeps its files is no property of a model.
    """
    given = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["cczoo", *(Path(w).name if w.startswith("/") else w for w in given)])


def json_file(value: Mapping[str, Any]) -> bytes:
    """JSON as entries hold it."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def answered(estimator: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(labels[1]) of rows; of a machine without probabilities the sigmoid of its value."""
    import numpy as np

    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(values)[:, 1], dtype=np.float64)
    from scipy.special import expit

    return np.asarray(expit(estimator.decision_function(values)), dtype=np.float64)


def loss(
    floats: NDArray[np.int64], integers: NDArray[np.int64], truth: NDArray[np.int64] | None
) -> dict[str, Any]:
    """What scaling to integers changed."""
    from models.sbd.digits import FIGURE

    differing = int((floats != integers).sum())
    found: dict[str, Any] = {
        "rows": len(floats),
        "disagreements": differing,
        "disagreement_share": round(differing / len(floats), FIGURE),
    }
    if truth is not None:
        found["accuracy_float"] = round(float((floats == truth).mean()), FIGURE)
        found["accuracy_integer"] = round(float((integers == truth).mean()), FIGURE)
    return found


def final_name(estimator: Any) -> str:
    """Class of an estimator, of the last step where it is a pipeline."""
    while type(estimator).__name__ == "Pipeline":
        estimator = estimator.steps[-1][1]
    return type(estimator).__name__
