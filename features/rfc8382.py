"""Summary statistics of delay and loss for shared-bottleneck detection (RFC 8382 section 3).

The RFC measures one-way delay; a sender's log has round trips, whose varying part is the queue
in front of the bottleneck too (and that of the way back). Only variations of the delay enter,
so either will do. Delays are raw samples: the RFC's optional weighting (section 4.1.1) is left out.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Float = NDArray[np.float64]

INTERVAL_US = 350_000
"""Base interval T, RFC 8382 section 2.2."""
M = 30
"""Base intervals that skewness and variability look back."""
N = 50
"""Base intervals that frequency and loss look back."""
P_V = 0.7
"""Share of the variability that the mean must be crossed by to count."""


def summary_statistics(
    time_us: Int,
    delay_us: Float,
    loss_us: Int,
    start_us: int,
    end_us: int,
    interval_us: float = INTERVAL_US,
    *,
    m: int = M,
    n: int = N,
    p_v: float = P_V,
    packets: Float | None = None,
) -> tuple[Float, Float, Float, Float]:
    """RFC 8382's four estimates at the end of each base interval.

    Parameters
    ----------
    time_us : int64 array [k]
        Sample times, ascending.
    delay_us : float64 array [k]
        Delay of each sample.
    loss_us : int64 array [l]
        Times of lost packets (of retransmissions, seen from the sender), ascending.
    start_us, end_us : int
        Span that is cut into base intervals; an incomplete last one is left out.
    interval_us : float
        Base interval T.
    m, n : int
        Intervals that are looked back: ``m`` by skewness and variability, ``n`` by frequency and
        loss. Until that many have passed, all so far.
    p_v : float
        Significance of a mean crossing.
    packets : float64 array [k], optional
        Packets that each sample stands for (an ACK may acknowledge several); 1 by default.

    Returns
    -------
    skew_est : float64 array [intervals]
        Share of samples below the mean minus share above it, in -1..1 (section 3.2.1).
    var_est : float64 array [intervals]
        Mean absolute deviation in us (section 3.2.2).
    freq_est : float64 array [intervals]
        Significant mean crossings per interval (section 3.2.3).
    pkt_loss : float64 array [intervals]
        Lost packets over all packets (section 3.2.4).
    """
    count = max(0, int((end_us - start_us) // interval_us))
    weights = np.ones(time_us.size) if packets is None else np.asarray(packets, np.float64)
    return _summary(
        np.asarray(time_us, np.int64),
        np.asarray(delay_us, np.float64),
        np.asarray(loss_us, np.int64),
        weights,
        float(start_us),
        float(interval_us),
        count,
        m,
        n,
        p_v,
    )


@numba.njit(cache=True)
def _summary(
    time_us: Int,
    delay_us: Float,
    loss_us: Int,
    packets: Float,
    start_us: float,
    interval_us: float,
    count: int,
    m: int,
    n: int,
    p_v: float,
) -> tuple[Float, Float, Float, Float]:
    skew_est, var_est = np.zeros(count), np.zeros(count)
    freq_est, pkt_loss = np.zeros(count), np.zeros(count)
    means = np.zeros(count)  # E_T of each interval; an empty one repeats the last
    samples, skew_base, var_base = np.zeros(count), np.zeros(count), np.zeros(count)
    lost, sent, crossings = np.zeros(count), np.zeros(count), np.zeros(count)
    at, at_loss = 0, 0
    while at < time_us.size and time_us[at] < start_us:
        at += 1
    while at_loss < loss_us.size and loss_us[at_loss] < start_us:
        at_loss += 1
    side = 0.0  # of the mean, at the last significant crossing
    for k in range(count):
        stop_us = start_us + (k + 1) * interval_us
        first = at
        total = 0.0
        while at < time_us.size and time_us[at] < stop_us:
            total += delay_us[at]
            sent[k] += packets[at]
            at += 1
        while at_loss < loss_us.size and loss_us[at_loss] < stop_us:
            lost[k] += 1.0
            at_loss += 1
        samples[k] = at - first
        if at > first:
            means[k] = total / (at - first)
        elif k > 0:
            means[k] = means[k - 1]
        # Sums of this interval compare with means known when it began (sections 3.2.1, 3.2.2).
        before = means[k - 1] if k > 0 else means[k]
        low = max(0, k - m)
        mean_delay = means[low:k].mean() if k > 0 else means[k]
        for i in range(first, at):
            if delay_us[i] < mean_delay:
                skew_base[k] += 1.0
            elif delay_us[i] > mean_delay:
                skew_base[k] -= 1.0
            var_base[k] += abs(delay_us[i] - before)
        low = max(0, k + 1 - m)
        number = samples[low : k + 1].sum()
        if number > 0:
            skew_est[k] = skew_base[low : k + 1].sum() / number
            var_est[k] = var_base[low : k + 1].sum() / number
        mean_delay = means[low : k + 1].mean()
        here = 0.0
        if means[k] > mean_delay + p_v * var_est[k]:
            here = 1.0
        elif means[k] < mean_delay - p_v * var_est[k]:
            here = -1.0
        if here != 0.0:
            if side != 0.0 and here != side:
                crossings[k] = 1.0
            side = here
        low = max(0, k + 1 - n)
        freq_est[k] = crossings[low : k + 1].sum() / (k + 1 - low)
        all_packets = sent[low : k + 1].sum() + lost[low : k + 1].sum()
        if all_packets > 0:
            pkt_loss[k] = lost[low : k + 1].sum() / all_packets
    return skew_est, var_est, freq_est, pkt_loss
