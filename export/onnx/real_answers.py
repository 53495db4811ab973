"""Asks a regressor for its answers, one column per label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError


def real_answers(
    estimator: Any, values: NDArray[np.float64], labels: tuple[str, ...], name: str
) -> NDArray[np.float64]:
    """What a fitted regressor answers on rows [N, d].

    Returns
    -------
    float64 array [N, labels]

    Raises
    ------
    UserError
        When it has more or fewer outputs than there are labels; ``name`` is the model's.
    """
    found = np.asarray(estimator.predict(values), dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.shape != (len(values), len(labels)):
        outputs, named = (f"{n} output{'s' * (n != 1)}" for n in (found.shape[1], len(labels)))
        raise UserError(
            f"model {name!r}: the regressor has {outputs}, its labels {', '.join(labels)} name "
            f"{named}: give one label per output"
        )
    return found
