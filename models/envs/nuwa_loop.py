"""The compiled loop of Nuwa's batch: what `models.envs.nuwa` describes, for many at once."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from data.netsim.jit import entry, inlined
from data.netsim.reference import reference
from data.netsim.seen import CODES, forget, see
from data.netsim.state import DONE, VARIABLES
from features import nuwa
from features.intervals import scale
from models.envs.loop import (
    ACT,
    ACTING,
    BEGIN,
    IDLE,
    INTERVAL_NS,
    ONE_BY_ONE,
    SHARED,
    begins_interval,
    next_one,
    simulated,
)
from models.envs.nuwa_reward import step_reward

SOURCES = ("features/intervals.py", "features/nuwa.py", "models/envs/loop.py",
           "models/envs/nuwa_reward.py")  # fmt: skip
"""What is compiled into this file's entry points besides the simulator."""

ACTIONS = (0.25, 1.0, 1.05, 1.25, 2.85)
"""Factors on k, eq. 11."""
K_LOW, K_HIGH = 1.0, 9.0
"""Range of k (section V)."""
_FACTORS = np.array(ACTIONS)

Arrays = namedtuple(
    "Arrays",
    "addresses order cursors claims home through work phase needs"
    " pauses own first intervals step_count lengths"
    " actions observations values rewards terminated truncated memory ring cursor counted"
    " loss_rate settings reward",
)
"""The arrays of `models.envs.nuwa.NuwaBatch` that the loop reads and writes."""

SETTINGS = (*SHARED, "start_intervals")
_, _, _START_INTERVALS = range(len(SETTINGS))

# What `counted` holds: the sender's and the receiver's counts at the interval before.
COUNTED = ("sent", "lost", "delay_sum", "delay_n")
_SENT, _LOST, _DELAY_SUM, _DELAY_N = range(len(COUNTED))

_RECEIVED, _WINDOW = CODES["received_bytes"], CODES["rcv_wnd_bytes"]
_BUFFER, _DELAY = CODES["rcv_queue_bytes"], CODES["owd_us"]
_TARGET, _GAIN = CODES["target_delay_us"], CODES["gain_milli"]


@entry
def run(thread: int, event_loop: Any, i: int, A: Any) -> int:
    """Go on with environments until their step is done; see `models.envs.loop.next_one`."""
    while True:
        if i >= 0:
            _go_on(event_loop, A, i)
            if A.needs[i] != DONE:
                return i
        i = next_one(thread, A)
        if i < 0:
            return i


@inlined
def _go_on(event_loop: Any, A: Any, i: int) -> None:
    S = reference(A.addresses[i])
    s = S.sub[S.conn[A.own[i]].sub0]
    place = S.conn[A.own[i]].sub0 * VARIABLES
    while True:
        if A.phase[i] == ACT:
            s.agent_k = min(K_HIGH, max(K_LOW, s.agent_k * _FACTORS[A.actions[i, 0]]))
        if begins_interval(A, i):
            forget(S.seen, place, VARIABLES)
        if not simulated(event_loop, A, i):
            return
        _observe(A, S, s, i, place)
        if A.phase[i] == ACTING:
            _settle(A, S, s, i)
            A.phase[i] = IDLE
            return
        late = A.intervals[i] - A.first[i] >= A.settings[_START_INTERVALS]
        through = s.nw_on != 0 or late
        A.phase[i] = IDLE if through else BEGIN
        if through:
            _losses(A, s, i)
            return
        if A.settings[ONE_BY_ONE] != 0:
            return


@inlined
def _observe(A: Any, S: Any, s: Any, i: int, place: int) -> None:
    """Read the receiver, the Statistics Collector of Fig. 11, and put its vector into the ring."""
    payload, seen = S.conn[A.own[i]].payload, S.seen
    see(seen[place + _RECEIVED], s.received * payload)
    see(seen[place + _WINDOW], min(s.rx_window, S.conn[A.own[i]].window) * payload)
    see(seen[place + _BUFFER], (s.received - s.rcv_nxt) * payload)
    see(seen[place + _TARGET], s.target_delay // 1000)
    see(seen[place + _GAIN], int(1000.0 * s.agent_k + 0.5))
    before = A.counted[i]
    if s.owd_n > before[_DELAY_N]:
        mean = (s.owd_sum - before[_DELAY_SUM]) // (s.owd_n - before[_DELAY_N])
        see(seen[place + _DELAY], mean // 1000)
    before[_DELAY_SUM], before[_DELAY_N] = s.owd_sum, s.owd_n
    now = A.values[i, 0]
    nuwa.observe(seen, place, A.memory[i], now)
    scale(now, nuwa.BOUNDS, A.observations[i, 0])
    A.cursor[i] = (A.cursor[i] + 1) % A.ring.shape[1]
    A.ring[i, A.cursor[i], :] = now


@inlined
def _losses(A: Any, s: Any, i: int) -> float:
    """Loss rate since the last call."""
    before = A.counted[i]
    sent, lost = s.sent - before[_SENT], s.lost - before[_LOST]
    before[_SENT], before[_LOST] = s.sent, s.lost
    if sent > 0:
        return float(min(1.0, lost / sent))
    return 1.0 if lost > 0 else 0.0


@inlined
def _settle(A: Any, S: Any, s: Any, i: int) -> None:
    """Reward the step and see whether it was the last."""
    now = A.values[i, 0]
    A.loss_rate[i] = _losses(A, s, i)
    rate_bps = now[nuwa.RECEIVED] * 8e9 / A.settings[INTERVAL_NS]
    A.rewards[i, 0] = step_reward(rate_bps, now[nuwa.DELAY], A.loss_rate[i], A.reward)
    A.step_count[i] += 1
    A.terminated[i] = S.conn[A.own[i]].done_t >= 0
    A.truncated[i] = A.step_count[i] >= A.lengths[i] and not A.terminated[i]
