"""SmartSBD's features in integers: what exported code computes, bit for bit.

Windows, series and features are those of :mod:`features.windows` and :mod:`features.smartsbd`
(smartsbd.txt section 3.2, Table 3) with the same settings, except for what a kernel needs
otherwise:

- values on the grid are whole microseconds; throughput is counted in units of 100 bit/s and a
  congested state is 100 000, so that one unit weighs as much in all three and sums of squares
  are integers (us^2). Values are cut at 67 s and 6.7 Gbit/s;
- the grid's step is a multiple of 1/65536 us; a grid point lies on the whole microsecond at or
  below its place;
- a window is closed by the first call at or past its end, whichever subflow's: a kernel can't
  know, as a log does, that a subflow will never be heard of again;
- only the scaled root at the end is rounded, half up as :class:`features.spec.Feature` says.

Of three and more subflows they are the windows of :mod:`features.pairs`, pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from features.arrays import Int
from features.fixed_cut import Cut
from features.fixed_series import (
    Q16,
    STATE_STEP,
    Calls,
    Flow,
    Samples,
    calls,
    clock,
    flow,
    linear,
    step,
)
from features.params import SbdParams
from features.smartsbd import FEATURES
from features.spec import Feature
from features.windows import Events, choose_pair, wifi_subflow

POINTS_MAX = 1024
"""Above it a sum along a warping path could pass 2^64."""
SUBFLOWS_MAX = 8
"""As many as Linux's path manager allows."""


class Fixed(NamedTuple):
    """Windows in time order: index ``window`` int64 array [n], ``x`` int64 array [n, features]."""

    window: Int
    x: Int


class FixedPairs(NamedTuple):
    """Windows of pairs, by window, then pair.

    ``window`` is an int64 array [n], ``pair`` int64 array [n, 2] with two positions, the smaller
    first, and ``x`` int64 array [n, features].
    """

    window: Int
    pair: Int
    x: Int


@dataclass(frozen=True)
class Quantity:
    """What a feature's name stands for.

    Attributes
    ----------
    kind : str
        ``ED``, ``DTWD``, ``SD_Ratio`` or ``Min_RTT_Ratio``.
    parts : tuple of str
        Fields of :class:`features.fixed_series.Flow` that it is of.
    scale, high : int
        Units per 1, and the largest value in these units.
    """

    kind: str
    parts: tuple[str, ...]
    scale: int
    high: int

    @property
    def gain(self) -> Fraction:
        """A distance is half the rounded root of this times its square in us^2."""
        return Fraction((2 * self.scale) ** 2, STATE_STEP**2)


def quantity(feature: Feature) -> Quantity:
    """Meaning of one of :data:`features.smartsbd.FEATURES`."""
    high = int(feature.high * feature.scale)
    *parts, kind = feature.name.removesuffix("_SD_Ratio").split("_")
    if feature.name == "Min_RTT_Ratio":
        return Quantity(feature.name, (), feature.scale, high)
    if feature.name.endswith("_SD_Ratio"):
        return Quantity("SD_Ratio", (kind,), feature.scale, high)
    return Quantity(kind, tuple(parts), feature.scale, high)


def needs_throughput(features: Sequence[Feature]) -> bool:
    """Whether any of these features is of the throughput series."""
    return any("Thpt" in feature.name.split("_") for feature in features)


def compute(
    row: Mapping[str, Any],
    events: Events,
    params: SbdParams,
    features: Sequence[Feature] = FEATURES,
) -> Fixed:
    """Windows and features of a connection's log, as :func:`features.windows.windows` takes it.

    Parameters
    ----------
    row, events : mapping
        The connection's row and its events.
    params : SbdParams
    features : sequence of Feature
        The columns, some of :data:`features.smartsbd.FEATURES`.
    """
    pair = choose_pair(events)
    if pair is None:
        return Fixed(np.empty(0, np.int64), np.empty((0, len(features)), np.int64))
    made = calls(events, pair, params, needs_throughput(features))
    return evaluate(made, wifi_of(row, pair), params, features)


def wifi_of(row: Mapping[str, Any], subflows: Sequence[int]) -> int:
    """Position of the WiFi subflow among these, -1 if the row names none of them."""
    subflow = wifi_subflow(row)
    return subflows.index(subflow) if subflow in subflows else -1


def evaluate(made: Calls, wifi: int, params: SbdParams, features: Sequence[Feature]) -> Fixed:
    """Windows and features of calls on two subflows: :func:`evaluate_pairs` of one pair."""
    window, _, x = evaluate_pairs(made, wifi, 2, params, features)
    return Fixed(window, x)


def evaluate_pairs(
    made: Calls, wifi: int, subflows: int, params: SbdParams, features: Sequence[Feature]
) -> FixedPairs:
    """Windows and features that exported code has after these calls.

    Parameters
    ----------
    made : Calls
        Any at all.
    wifi : int
        A subflow: WiFi's; -1: none. Of two others the first one is that of the smaller min RTT
        when it became a member (of two: when the first window starts).
    subflows : int
        2 to 8; calls for 0 to ``subflows`` - 1 count.
    params : SbdParams
    features : sequence of Feature
        The columns, some of :data:`features.smartsbd.FEATURES` or, for two subflows, of
        :data:`features.smartsbd_kernel.FEATURES`.

    Raises
    ------
    ValueError
        When ``max_points`` is above :data:`POINTS_MAX`, or the number of subflows out of range.
    """
    if params.max_points > POINTS_MAX:
        raise ValueError(f"max_points {params.max_points} is above {POINTS_MAX}")
    if not 2 <= subflows <= SUBFLOWS_MAX:
        raise ValueError(f"{subflows} subflows: 2 to {SUBFLOWS_MAX} are possible")
    measure = _measure(features)
    counted = made.take((made.subflow >= 0) & (made.subflow < subflows))
    if not needs_throughput(features):
        counted = counted.take(~counted.is_ack)
    clock_us = clock(counted)
    flows = [flow(counted, clock_us, number, params) for number in range(subflows)]
    index: list[int] = []
    pairs: list[tuple[int, int]] = []
    x: list[list[int]] = []
    for window in _windows(flows, clock_us, wifi, params):
        index.append(window.index)
        pairs.append(window.pair)
        x.append(measure(window))
    return FixedPairs(
        np.array(index, np.int64),
        np.array(pairs, np.int64).reshape(-1, 2),
        np.array(x, np.int64).reshape(-1, len(features)),
    )


def _measure(features: Sequence[Feature]) -> Callable[[Cut], list[int]]:
    """What makes a window's row of these features, window after window."""
    from features import smartsbd_kernel

    if smartsbd_kernel.holds(features):
        return smartsbd_kernel.Measure(features)
    quantities = [quantity(feature) for feature in features]
    return lambda window: [_feature(q, window) for q in quantities]


def _windows(flows: Sequence[Flow], clock_us: Int, wifi: int, params: SbdParams) -> Iterator[Cut]:
    congested = [times[states > 0] for times, states in (f.CState for f in flows)]
    entries = {i: int(times[0]) for i, times in enumerate(congested) if times.size}
    if len(entries) < 2:
        return
    joined: dict[int, int] = {}
    start, index = sorted(entries.values())[1], 0
    while True:
        smallest = _members(flows, entries, start)
        if len(smallest) < 2:
            return
        joined = smallest | joined
        length = max(params.window_factor * max(smallest.values()), params.min_window_us)
        end = start + length
        if clock_us[-1] < end:
            return
        inside = [int(np.diff(np.searchsorted(f.RTT[0], (start, end)))[0]) for f in flows]
        step_q16 = max(min(smallest.values()) * Q16, -(-length * Q16 // params.max_points))
        points = -(-length * Q16 // step_q16)
        grid_us = start + (np.arange(points) * step_q16 >> 16)
        sampled = [i for i in smallest if inside[i] >= params.min_samples]
        for a, b in combinations(sampled, 2):
            swap = wifi == b if wifi in (a, b) else joined[b] < joined[a]
            first, second = (b, a) if swap else (a, b)
            ordered = (flows[first], flows[second])
            series = {
                "RTT": [linear(f.RTT, grid_us, end) for f in ordered],
                "CState": [step(f.CState, grid_us) for f in ordered],
                "Thpt": [linear(f.Thpt, grid_us, end) for f in ordered],
            }
            low_us = [_smallest(f.RTT, end) for f in ordered]
            yield Cut(
                index,
                (a, b),
                (smallest[first], smallest[second]),
                (low_us[0], low_us[1]),
                step_q16,
                {name: np.stack(pair) for name, pair in series.items()},
            )
        passed = 1
        if max(inside) == 0:
            # Until the next event all windows are idle, however long that takes.
            following = int(clock_us[np.searchsorted(clock_us, start, side="right")])
            passed = max(1, (following - start) // length)
        start, index = start + passed * length, index + passed


def _members(flows: Sequence[Flow], entries: Mapping[int, int], start: int) -> dict[int, int]:
    """Subflows that have been congested and have an RTT by then, and their smallest RTTs."""
    found = {}
    for i, (times, values) in enumerate(f.RTT for f in flows):
        before = values[: np.searchsorted(times, start, side="right")]
        if before.size and i in entries and entries[i] <= start:
            found[i] = int(before.min())
    return found


def _smallest(samples: Samples, end_us: int) -> int:
    time_us, values = samples
    return int(values[: np.searchsorted(time_us, end_us)].min())


def _feature(q: Quantity, window: Cut) -> int:
    if q.kind == "Min_RTT_Ratio":
        wifi, other = window.min_rtt_us
        return min((2 * other * q.scale + wifi) // (2 * wifi), q.high)
    if q.kind == "SD_Ratio":
        wifi, other = (_spread(values) for values in window.series[q.parts[0]])
        if wifi == 0:
            return q.scale if other == 0 else q.high
        return _half_root(Fraction(other, wifi) * (2 * q.scale) ** 2, q.high)
    from features.fixed_dtw import cheapest

    a, b = np.stack([window.series[part] for part in q.parts], axis=-1)
    # Of three series a sum can pass 2^63: unsigned, here and in the recurrence.
    apart = ((a - b) ** 2).astype(np.uint64).sum()
    return _half_root(int(apart if q.kind == "ED" else cheapest(a, b)) * q.gain, q.high)


def _spread(values: Int) -> int:
    """Sum of squared deviations from the mean, rounded up to a whole us^2."""
    total = int(values.sum())
    return int((values * values).sum()) - total * total // values.size


def _half_root(square: Fraction, high: int) -> int:
    """Half of the root, rounded half up and cut at ``high``."""
    return min((math.isqrt(math.floor(square)) + 1) >> 1, high)
