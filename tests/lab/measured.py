"""Measurements in real time: what a busy machine has disturbed is measured again.

The disturbance is another one each time; a wrong program spoils every measurement alike, so that
its test fails all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

TRIES = 4
Seen = TypeVar("Seen")


class Measured(Generic[Seen]):
    """A measurement, taken when it is first looked at and kept as long as it passes."""

    def __init__(self, measure: Callable[[], Seen]) -> None:
        self._measure = measure
        self._kept: list[Seen] = []

    def check(self, test: Callable[[Seen], None]) -> None:
        """Hold a test against it, and against a new one after each failure.

        Raises
        ------
        AssertionError
            The last one's, after ``TRIES`` measurements.
        """
        for left in reversed(range(TRIES)):
            try:
                if not self._kept:
                    self._kept.append(self._measure())
                return test(self._kept[0])
            except AssertionError as error:
                if not left:
                    raise
                print(f"measured again, {left} tries left: {error}")
                self._kept.clear()


def of(fixture: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test what the fixture's `Measured` has measured, anew where it fails."""

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def tried(**given: Any) -> None:
            measured = given.pop(fixture)
            measured.check(lambda seen: test(**given, **{fixture: seen}))

        return tried

    return decorated
