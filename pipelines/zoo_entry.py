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
