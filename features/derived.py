"""Derives what a tree sees of an agent's observation: whole numbers, ratios, and their changes.

A network can learn ratios from logarithms, and changes from its memory. A tree compares one number
with another, so both are given to it. Everything here is an integer computed from integers (the
units of `features.whole`), so that the kernel computes the same bits: `Deriver` is the reference,
and `export.feature_code.policy` writes C of the same definitions.

All values stay within 24 bits: larger ones are cut off, and float32 holds each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from features.spec import Feature
from features.whole import whole

Ints = NDArray[np.int64]
ONE = 1 << 10
"""What a ratio of 1 is."""
MOST = (1 << 24) - 1
"""Values are cut off above it, and changes below its negative."""
MOST_RATIO = 1 << 20
LAGS = (1, 5, 20)
"""Intervals over which changes are taken."""
RING = 32
"""Intervals that are remembered, a power of two above the longest lag."""
SEGMENT_BITS = 12_000
"""Bits of a full packet, by which windows in segments become data."""
_OURS = "ours, see docs/deviations.md"


@dataclass(frozen=True)
class Column:
    """An observed number itself."""

    name: str


@dataclass(frozen=True)
class Extreme:
    """The least (above 0) or the largest of a column since the beginning; 0 before there is one."""

    name: str
    of: str
    least: bool
    doc: str


@dataclass(frozen=True)
class Ratio:
    """Products of columns over products of others, times a constant; 0 if those are 0.

    The quotient is rounded towards 0. ``unit`` is empty if 1 is `ONE`.
    """

    name: str
    top: tuple[str, ...]
    bottom: tuple[str, ...]
    doc: str
    times: int = ONE
    over: int = 1
    unit: str = ""


@dataclass(frozen=True)
class Change:
    """A value less the one some intervals ago, or less the oldest if there are fewer."""

    of: str
    lag: int

    @property
    def name(self) -> str:
        """The value's name with the lag."""
        return f"{self.of}_change_{self.lag}"


Derived = Column | Extreme | Ratio | Change


def _changes(*names: str) -> tuple[Change, ...]:
    return tuple(Change(name, lag) for name in names for lag in LAGS)


_TCCO: tuple[Derived, ...] = (
    Ratio("rtt_over_base", ("rtt_us",), ("base_rtt_us",), "RTT over base RTT"),
    Ratio(
        "cwnd_over_held",
        ("snd_cwnd",),
        ("bottleneck_kbps", "base_rtt_us"),
        "window over bottleneck x base RTT",
        # kbit/s times us are thousandths of a bit.
        times=ONE * SEGMENT_BITS * 1000,
    ),
    Ratio("rate_over_peak", ("throughput_kbps",), ("bottleneck_kbps",), "throughput over its peak"),
    Ratio(
        "rate_over_cwnd",
        ("throughput_kbps", "rtt_us"),
        ("snd_cwnd",),
        "data delivered in an RTT over the window",
        over=SEGMENT_BITS * 1000,
    ),
    Ratio(
        "held_segments",
        ("bottleneck_kbps", "base_rtt_us"),
        (),
        "bottleneck x base RTT",
        times=1,
        over=SEGMENT_BITS * 1000,
        unit="segments",
    ),
    *_changes("rtt_over_base", "cwnd_over_held", "rate_over_peak", "snd_cwnd"),
)
_NUWA: tuple[Derived, ...] = (
    Extreme("received_peak", "received_bytes", False, "most bytes received in an interval so far"),
    Ratio(
        "queueing_over_target", ("queueing_us",), ("target_delay_us",), "queueing delay over T_d"
    ),
    Ratio("delay_over_target", ("owd_us",), ("target_delay_us",), "one-way delay over T_d"),
    Ratio("received_over_peak", ("received_bytes",), ("received_peak",), "data over its peak"),
    Ratio("received_over_window", ("received_bytes",), ("rcv_wnd_bytes",), "data over the window"),
    Ratio("queue_over_window", ("rcv_queue_bytes",), ("rcv_wnd_bytes",), "buffer over the window"),
    *_changes("queueing_over_target", "received_over_peak", "gain_milli"),
)
_SENDER: tuple[Derived, ...] = (
    Extreme("least_rtt_us", "rtt_us", True, "least mean RTT of a step so far"),
    Extreme("acked_peak", "acked_bytes", False, "most bytes acknowledged in a step so far"),
    Ratio("rtt_over_least", ("rtt_us",), ("least_rtt_us",), "RTT over its least"),
    Ratio("acked_over_peak", ("acked_bytes",), ("acked_peak",), "data over its peak"),
    Ratio("acked_over_flight", ("acked_bytes",), ("in_flight_bytes",), "data over that in flight"),
    *_changes("rtt_over_least", "acked_bytes", "in_flight_bytes"),
)
_ROUTER: tuple[Derived, ...] = _changes("queue_packets", "dequeue_rate", "queue_delay_us")

DERIVED: dict[tuple[str, int], tuple[Derived, ...]] = {
    ("tcco", 0): _TCCO,
    ("nuwa", 0): _NUWA,
    ("macc", 0): _SENDER,
    ("macc", 1): _ROUTER,
}
"""Environment and kind of part -> what is derived, after the columns themselves and in order."""


def entries(environment: str, kind: int, observed: Sequence[Feature]) -> tuple[Derived, ...]:
    """All that a tree sees, the observed columns first.

    Parameters
    ----------
    environment : str
    kind : int
    observed : sequence of Feature
        The agent's own.
    """
    columns = tuple(Column(feature.name) for feature in whole(observed))
    return columns + DERIVED[environment, kind]


def features(environment: str, kind: int, observed: Sequence[Feature]) -> tuple[Feature, ...]:
    """Specs of what a tree sees, in order; parameters as of `entries`."""
    known: dict[str, Feature] = {}
    for feature in whole(observed):
        known[feature.name] = Feature(
            feature.name, feature.unit, 0.0, min(feature.high, MOST), 1, feature.source, feature.doc
        )
    for one in DERIVED[environment, kind]:
        known[one.name] = _spec(one, known)
    return tuple(known.values())


def _spec(one: Derived, known: dict[str, Feature]) -> Feature:
    if isinstance(one, Extreme):
        other = known[one.of]
        return Feature(one.name, other.unit, 0.0, other.high, 1, _OURS, one.doc)
    if isinstance(one, Ratio):
        unit = one.unit or f"1/{ONE}"
        return Feature(one.name, unit, 0.0, float(MOST_RATIO), 1, _OURS, one.doc)
    if isinstance(one, Change):
        other = known[one.of]
        doc = f"change of {one.of} over {one.lag} interval{'s' if one.lag > 1 else ''}"
        return Feature(one.name, other.unit, -other.high, other.high, 1, _OURS, doc)
    return known[one.name]


class Deriver:
    """Computes what trees see, for many parts side by side; remembers what changes need.

    Parameters
    ----------
    environment : str
    kind : int
    observed : sequence of Feature
        The agent's own features.
    rows : int
        Parts.
    """

    def __init__(self, environment: str, kind: int, observed: Sequence[Feature], rows: int) -> None:
        self.entries = entries(environment, kind, observed)
        self.features = features(environment, kind, observed)
        self._low = np.array([f.low for f in self.features], np.int64)
        self._high = np.array([f.high for f in self.features], np.int64)
        self._place = {one.name: i for i, one in enumerate(self.entries)}
        self._columns = sum(isinstance(one, Column) for one in self.entries)
        kept = dict.fromkeys(one.of for one in self.entries if isinstance(one, Change))
        self._kept = [self._place[name] for name in kept]
        self._slot = {name: i for i, name in enumerate(kept)}
        extremes = [one.name for one in self.entries if isinstance(one, Extreme)]
        self._extreme = {name: i for i, name in enumerate(extremes)}
        self._ring = np.zeros((rows, RING, len(kept)), np.int64)
        self._extremes = np.zeros((rows, len(extremes)), np.int64)
        self._count = np.zeros(rows, np.int64)
        self._rows = np.arange(rows)

    def update(self, values: NDArray[np.float64] | Ints, started: NDArray[np.bool_]) -> Ints:
        """One interval.

        Parameters
        ----------
        values : array [rows, d]
            What was observed, in the units of `features.whole`; rounded half up.
        started : bool array [rows]
            Parts whose episode begins with this observation.

        Returns
        -------
        int64 array [rows, F]
            In the order of `features`.
        """
        self._count[started] = 0
        self._extremes[started] = 0
        found = np.zeros((len(self._rows), len(self.entries)), np.int64)
        given = np.floor(np.asarray(values, np.float64) + 0.5)
        found[:, : self._columns] = np.clip(
            given, 0, self._high[: self._columns].astype(np.float64)
        ).astype(np.int64)
        for place in range(self._columns, len(self.entries)):
            one = self.entries[place]
            if isinstance(one, Extreme):
                found[:, place] = self._extremed(one, found)
            elif isinstance(one, Ratio):
                found[:, place] = self._divided(one, found)
            elif isinstance(one, Change):
                found[:, place] = self._changed(one, found)
            found[:, place] = np.clip(found[:, place], self._low[place], self._high[place])
        self._ring[self._rows, self._count % RING] = found[:, self._kept]
        # Beyond the ring's length only the place in it matters.
        self._count += 1
        return found

    def _extremed(self, one: Extreme, found: Ints) -> Ints:
        at, now = self._extreme[one.name], found[:, self._place[one.of]]
        before = self._extremes[:, at]
        if one.least:
            better = (now > 0) & ((before == 0) | (now < before))
        else:
            better = now > before
        self._extremes[:, at] = np.where(better, now, before)
        return self._extremes[:, at]

    def _divided(self, one: Ratio, found: Ints) -> Ints:
        top, bottom = np.full(len(found), one.times), np.full(len(found), one.over)
        for name in one.top:
            top = top * found[:, self._place[name]]
        for name in one.bottom:
            bottom = bottom * found[:, self._place[name]]
        quotient: Ints = np.where(bottom > 0, top // np.maximum(bottom, 1), 0)
        return quotient

    def _changed(self, one: Change, found: Ints) -> Ints:
        lag = np.minimum(self._count, one.lag)
        now = found[:, self._place[one.of]]
        before = self._ring[self._rows, (self._count - lag) % RING, self._slot[one.of]]
        change: Ints = np.where(lag > 0, now - before, 0)
        return change
