"""Nuwa, receiver-driven congestion control: nuwa.txt section IV, algorithm 1.

The receiver filters the one-way queueing delay (eqs. 1-4; all segments being of one size, the
term in the amount of data vanishes), looks up tanh((T_d - Q_d) / rho) in an integer table
(eq. 5), moves the window by theta * k / w (eq. 6) and sends it in its ACKs. It takes over when
the delay first reaches T_d or a segment is missing; before, the sender is in slow start.

In the filter's model the delay is a random walk, measured with noise. Changes of the measured
delay that follow each other then have a covariance of minus the noise's variance, which is how it
is estimated here. Squared errors of the filter won't do: they take a delay that rises and stays
for noise, upon which the filter stands still, errs on, and keeps the window at its least.

Nuwa replaces congestion avoidance alone (section IV.B) in a sender that is CUBIC (section VI.A):
losses are the sender's to repair, which cuts its window as CUBIC does. So that w_old stays the
window in use, the receiver cuts its own alike when it finds a segment missing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from data.netsim.cc.reno import past_slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR, LOSS, UNLIMITED

SUMMARY = "Nuwa: the receiver sets the window from one-way queueing delay (nuwa.txt section IV)"
FIELDS = {
    "nw_min": "i8", "nw_delay": "f8", "nw_p": "f8", "nw_noise": "f8", "nw_w": "f8",
    "nw_on": "i8", "nw_gap": "i8", "nw_count": "i8", "nw_since": "i8", "nw_rate": "f8",
    "nw_last": "i8", "nw_change": "f8",
}  # fmt: skip

_STEP = 1024
"""Entries of the table for 1 of its argument."""
_REACH = 4
TANH = np.array(
    [round(4096 * math.tanh(i / _STEP)) for i in range(-_REACH * _STEP, _REACH * _STEP + 1)],
    np.int64,
)
"""tanh in units of 2**-12 over [-4, 4]."""
_PROCESS_NOISE = 1.0
"""Variance the queueing delay gains per segment (ms**2)."""
_LEAST_NOISE = 1.0
"""Variance of a measurement (ms**2), at least: also where delays are exact."""
_BETA = 717.0 / 1024.0
"""What CUBIC leaves of a window on loss."""


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Forget all delays."""
    s.nw_min = FAR
    s.nw_p = 1.0
    s.nw_noise = _LEAST_NOISE
    s.nw_last = FAR
    s.nw_since = now


@compiled
def theta(x: float) -> float:
    """tanh(x) by table."""
    index = int(max(-float(_REACH), min(float(_REACH), x)) * _STEP) + _REACH * _STEP
    return float(TANH[index] / 4096.0)


@compiled
def receive(s: Any, sent: int, now: int) -> None:
    """One data segment: filter its delay, move the window."""
    one_way = now - sent
    s.nw_min = min(s.nw_min, one_way)
    raw = (one_way - s.nw_min) / 1e6
    if s.nw_last < FAR:
        change = (one_way - s.nw_last) / 1e6
        s.nw_noise = max(_LEAST_NOISE, s.nw_noise - (change * s.nw_change + s.nw_noise) / 64.0)
        s.nw_change = change
    s.nw_last = one_way
    s.nw_p += _PROCESS_NOISE
    gain = s.nw_p / (s.nw_p + s.nw_noise)
    s.nw_delay += gain * (raw - s.nw_delay)
    s.nw_p *= 1.0 - gain
    # Segments per RTT: the receiver's own estimate of the window in use.
    s.nw_count += 1
    if now - s.nw_since >= s.srtt:
        s.nw_rate = float(s.nw_count)
        s.nw_count = 0
        s.nw_since = now
    target = s.target_delay / 1e6
    missing = s.order > s.rcv_nxt
    if s.nw_on == 0:
        if s.nw_delay < target and not missing:
            return
        s.nw_on = 1
        s.nw_w = max(2.0, s.nw_rate)
    elif missing and s.nw_gap == 0:
        s.nw_w = max(2.0, s.nw_w * _BETA)
    s.nw_gap = 1 if missing else 0
    step = theta((target - s.nw_delay) / target) * s.agent_k / s.nw_w
    # A window that isn't used says nothing about the network: don't let it run away.
    if step < 0.0 or (not missing and s.nw_w < 2.0 * s.nw_rate + 10.0):
        s.nw_w = max(2.0, s.nw_w + step)
    s.rx_window = int(s.nw_w)


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Losses are answered as by CUBIC."""
    return max(int(s.cwnd * _BETA), 2)


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Take the receiver's window; slow start until there is one, and after a timeout."""
    # ACKs that left before the receiver took over carry no window of its own.
    if s.granted < UNLIMITED and not (s.ca_state == LOSS and s.cwnd < s.ssthresh):
        s.cwnd = s.granted
    elif s.cwnd < s.ssthresh:
        past_slow_start(s, acked)
