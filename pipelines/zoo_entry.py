"""Files that every entry of the zoo has, whatever kind of model it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STORED_VECTORS = 256
CONTENTS = 64
"""Of an entry whose observations are whole series."""


def sample_file(
    values: NDArray[np.float64], probability: NDArray[np.float64], count: int = STORED_VECTORS
) -> bytes:
    """``vectors.json``: an even sample of the rows, one a line.

    Parameters
    ----------
    values, probability : float64 [n, d] and [n]
        Observations with the trained model's answers.
    count : int
        Rows to keep.
    """
    import numpy as np

    chosen = np.unique(np.linspace(0, len(values) - 1, count).astype(np.int64))
    rows = ",\n  ".join(json.dumps(row) for row in values[chosen].tolist())
    answers = json.dumps(probability[chosen].tolist())
    return f'{{\n "probability": {answers},\n "values": [\n  {rows}\n ]\n}}\n'.encode()


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
    differing = int((floats != integers).sum())
    found: dict[str, Any] = {
        "rows": len(floats),
        "disagreements": differing,
        "disagreement_share": differing / len(floats),
    }
    if truth is not None:
        found["accuracy_float"] = float((floats == truth).mean())
        found["accuracy_integer"] = float((integers == truth).mean())
    return found


def final_name(estimator: Any) -> str:
    """Class of an estimator, of the last step where it is a pipeline."""
    while type(estimator).__name__ == "Pipeline":
        estimator = estimator.steps[-1][1]
    return type(estimator).__name__
