"""A subflow's calls to exported code become its series on a grid, in integers.

:func:`linear`, :func:`step` and :func:`throughput` are those of :mod:`features.resample` without
floating point. They are written over whole arrays, for being read; exported code gets to the same
numbers call by call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.schema import CONGESTED_STATES
from features.arrays import Int
from features.params import SbdParams
from features.smartsbd import RTT_UNIT_US, THROUGHPUT_UNIT_BPS
from features.windows import Events, trace

Unsigned = NDArray[np.uint64]
Samples = tuple[Int, Int]
"""(time_us, value), times ascending."""

VALUE_MAX = (1 << 26) - 1
"""67 s or 6.7 Gbit/s: with 1024 points every sum of squares along a warping path is below 2^64."""
STATE_STEP = int(RTT_UNIT_US)
THROUGHPUT_BPS = int(THROUGHPUT_UNIT_BPS / RTT_UNIT_US)
"""One unit of throughput in bit/s."""
TIME_MAX = 1 << 62
"""Times and numbers of bytes are cut here: one interval more never overflows."""
NEWLY_ACKED_MAX, SAMPLE_MAX = 1 << 46, 1 << 40
"""Bytes of one throughput sample, and its value: their products keep within 64 bits."""
FAR_BITS, FAR_SHIFT = 37, 27
"""Samples 2^37 us (38 h) or more apart are interpolated in units of 2^27 us."""
Q16 = 1 << 16


class Calls(NamedTuple):
    """The calls that a connection makes, in order; each field is an array of one length.

    Attributes
    ----------
    subflow : int64
        0 or 1; calls for another are without effect.
    time_us : uint64
        A time before an earlier call's counts as that call's.
    rtt_us : int64
        RTT in us, 0 for none, within 32 bits.
    ca_state : int64
        Congestion state from now on, negative for unchanged.
    is_ack : bool
        ``sbd_ack`` rather than ``sbd_sample``; ``rtt_us`` and ``ca_state`` don't count then.
    acked_bytes : uint64
        Highest acknowledged byte.
    """

    subflow: Int
    time_us: Unsigned
    rtt_us: Int
    ca_state: Int
    is_ack: NDArray[np.bool_]
    acked_bytes: Unsigned

    def take(self, which: NDArray[np.bool_]) -> Calls:
        """Only those calls."""
        return Calls(
            self.subflow[which],
            self.time_us[which],
            self.rtt_us[which],
            self.ca_state[which],
            self.is_ack[which],
            self.acked_bytes[which],
        )


class Flow(NamedTuple):
    """Series of one subflow, by the names that features have: us, 0 or 100 000, 100 bit/s."""

    RTT: Samples
    CState: Samples
    Thpt: Samples


def calls(events: Events, pair: Sequence[int], params: SbdParams, acks: bool) -> Calls:
    """The calls that a log's events stand for.

    Parameters
    ----------
    events : mapping
        Events of one connection.
    pair : (int, int)
        Its subflows 0 and 1.
    params : SbdParams
    acks : bool
        Whether ``sbd_ack`` is called too.
    """
    nothing = np.empty(0, np.int64)
    blocks = []
    for number, subflow in enumerate(pair):
        rtt = trace(events[subflow], params).rtt
        found = [
            (2, (rtt.time_us, rtt.value)),
            (3, events[subflow].get("ca_state", (nothing, nothing))),
        ]
        if acks:
            found.append((5, events[subflow].get("ack", (nothing, nothing))))
        for field, (times, values) in found:
            block = np.zeros((6, times.size), np.int64)
            block[0], block[1], block[3], block[4] = number, times, -1, field == 5
            block[field] = values
            blocks.append(block)
    merged = np.concatenate(blocks, axis=1)
    # A log's clock may begin anywhere, that of the calls has no sign.
    subflows, times, rtts, states, is_ack, acked = merged[:, np.argsort(merged[1], kind="stable")]
    unsigned = [np.maximum(column, 0).astype(np.uint64) for column in (times, acked)]
    return Calls(subflows, unsigned[0], rtts, states, is_ack.astype(np.bool_), unsigned[1])


def clock(made: Calls) -> Int:
    """Time of each call in us, ascending: time doesn't run backwards, and ends at 2^62."""
    times = np.minimum(made.time_us, np.uint64(TIME_MAX)).astype(np.int64)
    return np.asarray(np.maximum.accumulate(times), np.int64)


def flow(made: Calls, clock_us: Int, number: int, params: SbdParams) -> Flow:
    """Series of subflow ``number``."""
    own = made.subflow == number
    known = own & ~made.is_ack & (made.rtt_us > 0)
    turns = own & ~made.is_ack & (made.ca_state >= 0)
    acks = own & made.is_ack
    acked = np.minimum(made.acked_bytes[acks], np.uint64(TIME_MAX)).astype(np.int64)
    return Flow(
        RTT=(clock_us[known], np.minimum(made.rtt_us[known], VALUE_MAX)),
        CState=(
            clock_us[turns],
            np.where(np.isin(made.ca_state[turns], CONGESTED_STATES), STATE_STEP, 0),
        ),
        Thpt=throughput(clock_us[acks], acked, ewma_q16(params)),
    )


def ewma_q16(params: SbdParams) -> int:
    """Weight of a new throughput sample in 1/65536."""
    return max(1, round(params.ewma_weight * Q16))


def linear(samples: Samples, grid_us: Int, end_us: int) -> Int:
    """Interpolate the samples before ``end_us``, rounded to the nearest, half towards the later.

    The first and the last value are held, 0 if there is none.
    """
    time_us, value = samples
    n = int(np.searchsorted(time_us, end_us))
    if n == 0:
        return np.zeros(grid_us.size, np.int64)
    after = np.searchsorted(time_us[:n], grid_us, side="right")
    left, right = np.maximum(after - 1, 0), np.minimum(after, n - 1)
    gap, passed = time_us[right] - time_us[left], np.maximum(grid_us - time_us[left], 0)
    far = np.where(gap >> FAR_BITS > 0, FAR_SHIFT, 0)
    gap, passed = np.maximum(gap >> far, 1), passed >> far
    rise = value[right] - value[left]
    # If a value is held the rise is 0, and so is the product, however much time has passed.
    moved = (np.abs(rise) * passed + gap // 2) // gap
    return np.asarray(value[left] + np.sign(rise) * moved, np.int64)


def step(samples: Samples, grid_us: Int) -> Int:
    """Value of a piecewise constant series, 0 before the first change."""
    time_us, value = samples
    after = np.searchsorted(time_us, grid_us, side="right")
    return np.concatenate([[0], value]).astype(np.int64)[after]


def throughput(time_us: Int, acked: Int, weight_q16: int) -> Samples:
    """EWMA of the achieved throughput in units of :data:`THROUGHPUT_BPS`, one per new ACK.

    ACKs of one microsecond count as one, the last; the average has 16 fractional bits.
    """
    last = np.append(time_us[1:] != time_us[:-1], np.ones(min(1, time_us.size), np.bool_))
    times: list[int] = []
    values: list[int] = []
    since, base, average = 0, -1, 0
    for now, total in zip(time_us[last].tolist(), acked[last].tolist(), strict=True):
        newly, took = min(total - base, NEWLY_ACKED_MAX), now - since
        if newly <= 0:
            continue
        if base >= 0:
            sample = (newly * (8_000_000 // THROUGHPUT_BPS) + took // 2) // took
            target = min(sample, SAMPLE_MAX) * Q16
            change = abs(target - average) * weight_q16 // Q16
            average = target if not times else average + (change if target > average else -change)
            times.append(now)
            values.append(min((average + Q16 // 2) // Q16, VALUE_MAX))
        since, base = now, total
    return np.array(times, np.int64), np.array(values, np.int64)
