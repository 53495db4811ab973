"""Feature families of shared-bottleneck detection, and both of them together."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

import numpy as np

from data.errors import unknown_name
from features.resample import Float
from features.spec import Feature
from features.windows import Window

FAMILIES: dict[str, str] = {
    "smartsbd": "features.smartsbd",
    "smartsbd-plus": "features.smartsbd_plus",
}
"""name -> module with ``FEATURES`` and ``compute(windows) -> float64 [windows, features]``."""

SERIES: dict[str, str] = {"smartsbd-series": "features.series_pair"}
"""The same of families that have a table of their own, being wide and for neural models alone."""

TABLES: dict[str, tuple[str, ...]] = {"sbd": tuple(FAMILIES), "series": tuple(SERIES)}
"""Table that ``cczoo features`` makes -> its families."""

_ALL = {**FAMILIES, **SERIES}


def features_of(family: str) -> tuple[Feature, ...]:
    """Entries of a family, in column order.

    Raises
    ------
    UserError
        When there is no such family.
    """
    if family not in _ALL:
        raise unknown_name("feature family", family, _ALL)
    found: tuple[Feature, ...] = importlib.import_module(_ALL[family]).FEATURES
    return found


def compute(family: str, windows: Sequence[Window]) -> Float:
    """Features of one family.

    Parameters
    ----------
    family : str
        Key of :data:`FAMILIES` or :data:`SERIES`.
    windows : sequence of Window
        Samples.

    Returns
    -------
    float64 [len(windows), features]
        Finite, clipped to the entries' ranges.
    """
    if not windows:
        return np.empty((0, len(features_of(family))))
    function: Callable[[Sequence[Window]], Float] = importlib.import_module(_ALL[family]).compute
    return function(windows)
