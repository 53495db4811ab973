"""Checks what a JSON document holds; each failure names its place in the document."""

from __future__ import annotations

from typing import Any


class Malformed(Exception):
    """What is wrong in a document, with the place in it."""


def listed(value: Any, where: str) -> list[Any]:
    """``value`` as a list, or Malformed."""
    if not isinstance(value, list):
        raise Malformed(f"{where}: a list was expected")
    return value


def integer(value: Any, where: str, low: int, high: int) -> int:
    """``value`` as an integer within bounds, or Malformed."""
    if type(value) is not int or not low <= value <= high:
        raise Malformed(f"{where}: an integer in {low}..{high} was expected")
    return value


def integers(value: Any, where: str, low: int, high: int) -> tuple[int, ...]:
    """``value`` as a list of integers within bounds, or Malformed."""
    items = listed(value, where)
    return tuple(integer(v, f"{where}[{i}]", low, high) for i, v in enumerate(items))
