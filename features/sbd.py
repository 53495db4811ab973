"""Feature families of shared-bottleneck detection, and both of them together."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from data.errors import unknown_name

if TYPE_CHECKING:
    from features.arrays import Float
    from features.params import SbdParams
    from features.spec import Feature
    from features.windows import Window

FAMILIES: dict[str, str] = {
    "smartsbd": "features.smartsbd",
    "smartsbd-plus": "features.smartsbd_plus",
    "smartsbd-plus-kernel": "features.smartsbd_kernel",
}
"""name -> module with ``FEATURES`` and ``compute(windows)``: float64 array [windows, features]."""

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


def table_of(family: str) -> str | None:
    """Table of `cczoo features` that holds a family, None of a family without windows."""
    return next((table for table, families in TABLES.items() if family in families), None)


def settings_for(
    family: str, given: SbdParams | Mapping[str, Any], where: str = "features.sbd"
) -> dict[str, Any]:
    """What a family's features are computed with: every setting, defaults if none is given.

    Parameters
    ----------
    family : str
        Settings of windows belong to the families of this module; others have none.
    given : SbdParams or mapping
        Some or all settings.
    where : str
        What they were read from, for the message.

    Raises
    ------
    UserError
        When a setting is unknown or out of range.
    """
    from features.params import SbdParams

    return SbdParams.parse(given, where).model_dump() if family in _ALL else {}


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the settings that aren't the same in both, sorted."""
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


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
    float64 array [len(windows), features]
        Finite, clipped to the entries' ranges.
    """
    import numpy as np

    if not windows:
        return np.empty((0, len(features_of(family))))
    function: Callable[[Sequence[Window]], Float] = importlib.import_module(_ALL[family]).compute
    return function(windows)
