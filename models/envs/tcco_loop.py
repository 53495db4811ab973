"""The compiled loop of TCCO's batch: what `models.envs.tcco` describes, for many at once."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from data.netsim.jit import compiled, entry, inlined
from data.netsim.reference import reference
from data.netsim.seen import CODES, forget, see
from data.netsim.state import DONE, OPEN, VARIABLES
from features import tcco
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
from models.envs.tcco_reward import step_reward

SOURCES = ("features/intervals.py", "features/tcco.py", "models/envs/loop.py",
           "models/envs/tcco_reward.py")  # fmt: skip
"""What is compiled into this file's entry points besides the simulator."""

Arrays = namedtuple(
    "Arrays",
    "addresses order cursors claims home through work phase needs"
    " pauses own first intervals step_count lengths"
    " actions observations values mask rewards terminated truncated targets draining memory ring"
    " cursor unit most at_bound path_bps settings observing shares reward",
)
"""The arrays of `models.envs.tcco.TccoBatch` that the loop reads and writes."""

SETTINGS = (*SHARED, "reach", "step_segments", "min_cwnd", "max_cwnd",
            "start_cwnd", "start_intervals", "probe_intervals")  # fmt: skip
(_, _, _REACH, _STEP, _MIN, _MAX, _START, _START_INTERVALS, _PROBE) = range(len(SETTINGS))
SHARES = ("step_share", "most_held")
_STEP_SHARE, _MOST_HELD = range(len(SHARES))
_DELIVERED = CODES["delivered_bytes"]


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
    first = S.conn[A.own[i]].sub0
    paths = S.conn[A.own[i]].sub_n
    while True:
        if A.phase[i] == ACT:
            _act(A, S, i)
        if begins_interval(A, i):
            forget(S.seen, first * VARIABLES, paths * VARIABLES)
        if not simulated(event_loop, A, i):
            return
        _observe(A, S, i)
        if A.phase[i] == ACTING:
            _settle(A, S, i)
            A.phase[i] = IDLE
            return
        last = A.intervals[i] - A.first[i] >= A.settings[_START_INTERVALS]
        A.phase[i] = IDLE if _take_over(A, S, i, last) else BEGIN
        if A.phase[i] == IDLE or A.settings[ONE_BY_ONE] != 0:
            return


@inlined
def _act(A: Any, S: Any, i: int) -> None:
    """Move the windows' targets, drain the queues where a Probe phase is due."""
    c = S.conn[A.own[i]]
    p = A.settings
    due = p[_PROBE] > 0 and A.step_count[i] > 0 and A.step_count[i] % p[_PROBE] == 0
    for k in range(c.sub_n):
        now = A.values[i, k]
        delta = A.actions[i, k] - p[_REACH]
        wanted = A.targets[i, k] + A.unit[i, k] * delta
        target = max(p[_MIN], min(A.most[i, k], wanted))
        A.targets[i, k] = target
        A.at_bound[i, k] = 1 if wanted >= A.most[i, k] else (-1 if wanted <= p[_MIN] else 0)
        # The reward's rules, of the state in which the action was chosen.
        A.rewards[i, k] = 0.0
        if A.at_bound[i, k] != 0:
            A.rewards[i, k] = -1.0
        elif now[tcco.EXPFLAG] > 0.0:
            A.rewards[i, k] = 1.0 if delta > 0 else -1.0
        if due:
            interval_us = p[INTERVAL_NS] // 1000
            A.draining[i, k] = int(np.ceil(2.0 * now[tcco.RTT] / interval_us)) + 1
        window = target
        if A.draining[i, k] > 0:
            window = min(target, max(p[_MIN], int(_held(now, c.payload) // 2.0)))
            A.draining[i, k] -= 1
        S.sub[c.sub0 + k].agent_cwnd = window


@inlined
def _observe(A: Any, S: Any, i: int) -> None:
    """Read what no ACK carries, make the observations of the interval, put them into the ring."""
    c = S.conn[A.own[i]]
    A.cursor[i] = (A.cursor[i] + 1) % A.ring.shape[1]
    for k in range(c.sub_n):
        place = (c.sub0 + k) * VARIABLES
        see(S.seen[place + _DELIVERED], S.sub[c.sub0 + k].delivered * c.payload)
        now = A.values[i, k]
        tcco.observe(S.seen, place, A.memory[i, k], A.observing, now)
        scale(now, tcco.BOUNDS, A.observations[i, k])
        for name in range(len(now)):
            A.ring[i, A.cursor[i], k, name] = now[name]
        _limit(A, i, k, _held(now, c.payload))


@compiled
def _held(now: Any, payload: int) -> float:
    """What a path holds by its observation, in segments: bottleneck times base RTT."""
    return float(now[tcco.BOTTLENECK] * now[tcco.BASE_RTT] / 8e6 / payload)


@inlined
def _limit(A: Any, i: int, k: int, held: float) -> None:
    """Say how far the next action goes, and where the window's upper bound lies."""
    p = A.settings
    A.unit[i, k] = max(p[_STEP], int(A.shares[_STEP_SHARE] * held))
    most = int(A.shares[_MOST_HELD] * held)
    # What a path holds is known when as many intervals have gone by as its rate is a mean of:
    # until then slow start's own lower rates are among them.
    known = most > 0 and A.step_count[i] >= A.observing[tcco.SPAN]
    A.most[i, k] = min(p[_MAX], max(p[_START], most)) if known else p[_MAX]


@inlined
def _take_over(A: Any, S: Any, i: int, last: bool) -> bool:
    """End the Start phase of subflows that are through it; whether all are."""
    c = S.conn[A.own[i]]
    p = A.settings
    all_through = True
    for k in range(c.sub_n):
        s = S.sub[c.sub0 + k]
        if A.targets[i, k] < 0:
            if s.cwnd >= p[_START] or s.ca_state != OPEN or last:
                A.targets[i, k] = min(p[_MAX], max(p[_MIN], s.cwnd))
            else:
                all_through = False
        s.agent_cwnd = A.targets[i, k]
    return all_through


@inlined
def _settle(A: Any, S: Any, i: int) -> None:
    """Reward the step and see whether it was the last."""
    for k in range(S.conn[A.own[i]].sub_n):
        rule = A.rewards[i, k]
        rows = A.ring[i, :, k]
        there, path_bps = A.intervals[i], A.path_bps[i, k]
        over = A.at_bound[i, k] > 0
        A.rewards[i, k] = step_reward(rows, A.cursor[i], there, rule, over, path_bps, A.reward)
    A.step_count[i] += 1
    A.terminated[i] = S.conn[A.own[i]].done_t >= 0
    A.truncated[i] = A.step_count[i] >= A.lengths[i] and not A.terminated[i]
