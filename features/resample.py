"""Samples at ACK times become series on an equidistant grid (smartsbd.txt section 3.2)."""

from __future__ import annotations

import numba
import numpy as np

from features.arrays import Float, Int


@numba.njit(cache=True)
def linear(time_us: Int, value: Float, start_us: float, step_us: float, points: int) -> Float:
    """Interpolate linearly at ``start + k * step``; the first and the last value are held.

    Parameters
    ----------
    time_us : int64 array [n]
        Sample times, ascending, n >= 1. Of samples at one time the last counts.
    value : float64 array [n]
        Sample values.
    start_us, step_us, points
        The grid.

    Returns
    -------
    float64 array [points]
        NaN everywhere when there is no sample.
    """
    out = np.empty(points)
    n = time_us.size
    if n == 0:
        out[:] = np.nan
        return out
    after = 0  # first sample later than the grid point
    for k in range(points):
        t = start_us + k * step_us
        while after < n and time_us[after] <= t:
            after += 1
        if after == 0:
            out[k] = value[0]
        elif after == n:
            out[k] = value[n - 1]
        else:
            t0 = time_us[after - 1]
            share = (t - t0) / (time_us[after] - t0)
            out[k] = value[after - 1] + share * (value[after] - value[after - 1])
    return out


@numba.njit(cache=True)
def step(time_us: Int, value: Float, start_us: float, step_us: float, points: int) -> Float:
    """Value of a piecewise constant series at ``start + k * step``.

    Parameters
    ----------
    time_us : int64 array [n]
        Times from which ``value`` holds, ascending; n may be 0.
    value : float64 array [n]
        Values.
    start_us, step_us, points
        The grid.

    Returns
    -------
    float64 array [points]
        0 before the first change: a TCP connection begins in state Open.
    """
    out = np.empty(points)
    n = time_us.size
    after = 0
    for k in range(points):
        t = start_us + k * step_us
        while after < n and time_us[after] <= t:
            after += 1
        out[k] = 0.0 if after == 0 else value[after - 1]
    return out


@numba.njit(cache=True)
def smoothed_throughput(time_us: Int, ack: Int, weight: float) -> tuple[Int, Float]:
    """EWMA of the achieved throughput, one sample per new ACK.

    A sample is the newly acknowledged bytes over the time since the previous new ACK. ACKs of
    one microsecond count as one; an ACK that acknowledges nothing new gives no sample.

    Parameters
    ----------
    time_us : int64 array [n]
        ACK times, ascending.
    ack : int64 array [n]
        Highest acknowledged byte.
    weight : float
        Weight of the new sample; the average starts at the first sample.

    Returns
    -------
    time_us : int64 array [k]
        Time of each sample.
    throughput_bps : float64 array [k]
        Smoothed throughput in bit/s.
    """
    n = time_us.size
    times = np.empty(n, np.int64)
    values = np.empty(n, np.float64)
    k = 0
    if n == 0:
        return times, values
    last_time, last_ack = time_us[0], ack[0]
    average = 0.0
    for i in range(n):
        if i + 1 < n and time_us[i + 1] == time_us[i]:
            last_of_its_time = False
        else:
            last_of_its_time = True
        if not last_of_its_time or ack[i] <= last_ack:
            continue
        if time_us[i] == last_time:  # the very first instant of the log: no interval yet
            last_ack = ack[i]
            continue
        sample = 8e6 * (ack[i] - last_ack) / (time_us[i] - last_time)
        average = sample if k == 0 else average + weight * (sample - average)
        times[k] = time_us[i]
        values[k] = average
        k += 1
        last_time, last_ack = time_us[i], ack[i]
    return times[:k], values[:k]
