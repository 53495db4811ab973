"""A window of two subflows in integers, which the integer features are computed from."""

from __future__ import annotations

from dataclasses import dataclass

from features.arrays import Int


@dataclass(frozen=True)
class Cut:
    """A window of a pair as its features take it.

    Attributes
    ----------
    index : int
        The window's number.
    pair : (int, int)
        Its subflows, the smaller first. In the others the WiFi subflow is the first one.
    min_rtt_us, base_us : (int, int)
        Smallest RTTs up to the window's start, and before its end.
    step_q16 : int
        Step of the grid in 1/65536 us.
    series : dict
        Name -> int64 array [2, points].
    """

    index: int
    pair: tuple[int, int]
    min_rtt_us: tuple[int, int]
    base_us: tuple[int, int]
    step_q16: int
    series: dict[str, Int]
