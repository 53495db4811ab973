"""A `Feature` describes one column of a table, in every family of features alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Feature:
    """One feature: its meaning, and the fixed-point form it takes in exported code.

    Attributes
    ----------
    name : str
        Column name, the paper's if there is one.
    unit : str
        Unit of the floating-point value.
    low, high : float
        Range that exported code clips to, in ``unit``.
    scale : int
        The integer that exported code sees is ``floor(value * scale + 0.5)``.
    source : str
        Paper and table or equation.
    doc : str
        One line.
    """

    name: str
    unit: str
    low: float
    high: float
    scale: int
    source: str
    doc: str

    @property
    def meaning(self) -> tuple[str, str, float, float, int]:
        """All but ``source`` and ``doc``, which are words for people."""
        return self.name, self.unit, float(self.low), float(self.high), self.scale


def schema_hash(features: Sequence[Feature], settings: Mapping[str, Any]) -> str:
    """SHA-256 of what a model and the code that computes its features must agree on.

    Parameters
    ----------
    features : sequence of Feature
        Their order, names, units, ranges and scales count.
    settings : mapping
        What they are computed with: :func:`features.sbd.settings_for` of their family.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    what = {"features": [f.meaning for f in features], "settings": dict(settings)}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
