"""What a feature is, whatever the family it belongs to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Feature:
    """One feature: its meaning, and the fixed-point form it takes in exported code.

    Attributes
    ----------
    name : str
        Column name, the paper's where there is one.
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


def schema_hash(features: Sequence[Feature]) -> str:
    """SHA-256 over order, names, units, scales and ranges: what a model must agree on."""
    text = json.dumps([asdict(f) for f in features], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
