"""A simulation's size is bounded: what lies beyond is refused before any work.

The bounds are far beyond anything that was ever simulated here. Within them times in nanoseconds
fit the simulator's integers, and packets follow each other by at least one nanosecond.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field

MOST_MBPS = 100_000.0
MOST_LINKS = MOST_FLOWS = 10_000
MOST_STEPS = 1_000_000
MOST_SAMPLES = 100_000_000
"""Sampled values: samples times subflows and links."""
MOST_WAITING = 1 << 26
"""Packets that may be on their way at once: flows' windows, and cross traffic in queues."""
MOST_PACKETS = 2e9
"""Packets of one run: more than half an hour of computing."""
TRACE_MBPS = 1000.0
"""What a link is taken to carry at most whose trace has not been read yet."""

Rate = Annotated[float, Field(ge=0.001, le=MOST_MBPS)]
"""Mbps."""
RateOrNone = Annotated[float, Field(ge=0, le=MOST_MBPS)]
"""Mbps of a series, where a link may also stand still."""
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Length = Annotated[float, Field(gt=0, le=86_400)]
"""A duration in s."""
Period = Annotated[float, Field(ge=0.001, le=86_400)]
"""After which a series begins again, in s."""
Delay = Annotated[float, Field(ge=0, le=100_000)]
"""Delay of a link or a timer, in ms."""
Span = Annotated[float, Field(gt=0, le=100_000)]
"""As `Delay`, but above 0."""
Packets = Annotated[int, Field(ge=0, le=1_000_000_000)]
Bytes = Annotated[int, Field(ge=0, le=1_000_000_000_000)]


def ascending(pairs: list[tuple[float, float]], period: float | None, what: str) -> None:
    """Refuse a series whose times don't ascend from 0 or go beyond its period.

    Raises
    ------
    ValueError
        ``what`` is the series' name.
    """
    times = [time for time, _ in pairs]
    if not times or times[0] != 0 or any(b <= a for a, b in pairwise(times)):
        raise ValueError(f"{what}: times ascend from 0")
    if period is not None and period <= times[-1]:
        raise ValueError(f"{what}: the period must exceed the last time, {times[-1]:g} s")
