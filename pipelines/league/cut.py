"""Cut the part of a capacity trace that a scenario plays."""

from __future__ import annotations

import numpy as np

from data.netsim.rates import OPPORTUNITIES
from data.netsim.traces import Series
from pipelines.league.capacity import PACKET_BITS

LENGTH_NS = 30_000_000_000
_MS = 1_000_000
_TRIES = 20


def cut(series: Series, rng: np.random.Generator) -> tuple[list[str], float]:
    """Draw a part of a trace, which carries something.

    Parameters
    ----------
    series : Series
        As from `data.netsim.traces.read`. One of no more than 30 s is taken whole.
    rng : numpy Generator

    Returns
    -------
    lines : list of str
        A trace file in the form of the whole.
    mean_mbps : float
        Its mean rate.
    """
    kind, times, rates, period = series
    length = min(period, LENGTH_NS)
    start = _start(series, length, rng)
    if kind == OPPORTUNITIES:
        inside = (times >= start) & (times <= start + length)
        bits = PACKET_BITS * float(inside.sum())
        at = times[inside] - start
        if start + length < period and at[-1] < length:
            # The last line is where a trace ends, and begins again.
            at = np.append(at, length)
        return [f"{time / 1e6:.9g}" for time in at.tolist()], bits / length * 1e3
    later = (times > start) & (times < start + length)
    in_force = int(np.searchsorted(times, start, "right")) - 1
    at = np.concatenate([[0], times[later] - start])
    held = np.concatenate([rates[in_force : in_force + 1], rates[later]])
    bits = float((held * np.diff(np.append(at, length))).sum()) / 1e9
    if length < period:
        at, held = np.append(at, length), np.append(held, held[-1])
    pairs = zip(at.tolist(), held.tolist(), strict=True)
    return [f"{time / 1e9:.12g} {rate / 1e6:.9g}" for time, rate in pairs], bits / length * 1e3


def _start(series: Series, length: int, rng: np.random.Generator) -> int:
    """A start in whole ms, after which the trace soon carries something."""
    kind, times, rates, period = series
    if length == period:
        return 0
    carries = times if kind == OPPORTUNITIES else times[rates > 0]
    for _ in range(_TRIES):
        start = int(rng.integers((period - length) // _MS + 1)) * _MS
        first, last = np.searchsorted(carries, [start, start + length // 2])
        if last > first:
            return start
    return max(0, min(int(carries[0]) // _MS * _MS, period - length))
