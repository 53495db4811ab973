"""The compiled loop of MA-CC's batch: what `models.envs.macc` describes, for many at once."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from data.netsim.jit import entry, inlined
from data.netsim.readings import in_flight, waiting
from data.netsim.reference import reference
from data.netsim.seen import CODES, forget, see
from data.netsim.state import CODEL, DONE, OPEN, VARIABLES
from features import macc
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
from models.envs.macc_reward import router_reward, sender_reward

SOURCES = ("features/intervals.py", "features/macc.py", "models/envs/loop.py",
           "models/envs/macc_reward.py")  # fmt: skip
"""What is compiled into this file's entry points besides the simulator."""

Arrays = namedtuple(
    "Arrays",
    "addresses order cursors claims home through work phase needs"
    " pauses intervals step_count lengths"
    " actions observations values mask rewards truncated memory flow_of link_of loss_rates"
    " settings reward",
)
"""The arrays of `models.envs.macc.MaccBatch` that the loop reads and writes."""

SETTINGS = (*SHARED, "senders", "step_segments", "max_cwnd", "start_cwnd",
            "start_intervals")  # fmt: skip
(_, _, _SENDERS, _STEP, _MAX, _START, _START_INTERVALS) = range(len(SETTINGS))

_FLIGHT, _QUEUE, _WAIT = (
    CODES["in_flight_bytes"], CODES["queue_packets"], CODES["queue_delay_us"]
)  # fmt: skip
_OUT, _OFFERED, _DROPPED = (
    CODES["dequeued_packets"], CODES["offered_packets"], CODES["dropped_packets"]
)  # fmt: skip


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
    while True:
        if A.phase[i] == ACT:
            _act(A, S, i)
        if begins_interval(A, i):
            forget(S.seen, 0, len(S.seen))
        if not simulated(event_loop, A, i):
            return
        _observe(A, S, i)
        if A.phase[i] == ACTING:
            # Of those that started late.
            _take_over(A, S, i)
            _settle(A, i)
            A.phase[i] = IDLE
            return
        A.phase[i] = IDLE if _take_over(A, S, i) else BEGIN
        if A.phase[i] == IDLE or A.settings[ONE_BY_ONE] != 0:
            return


@inlined
def _act(A: Any, S: Any, i: int) -> None:
    """Senders: up, down, hold (eq. 1). Routers: keep, drop all (eq. 2)."""
    senders = A.settings[_SENDERS]
    for a in range(A.mask.shape[1]):
        if not A.mask[i, a]:
            continue
        action = A.actions[i, a]
        if a >= senders:
            S.link[A.link_of[i, a - senders]].agent_p = float(action)
            continue
        s = S.sub[S.conn[A.flow_of[i, a]].sub0]
        if s.agent_cwnd <= 0:
            # In slow start still.
            continue
        change = A.settings[_STEP] if action == 0 else (-A.settings[_STEP] if action == 1 else 0)
        s.agent_cwnd = min(A.settings[_MAX], max(1, s.agent_cwnd + change))


@inlined
def _observe(A: Any, S: Any, i: int) -> None:
    """Read what no ACK carries and make the observations of the interval."""
    senders = A.settings[_SENDERS]
    for a in range(A.mask.shape[1]):
        if not A.mask[i, a]:
            continue
        now = A.values[i, a]
        if a < senders:
            c = S.conn[A.flow_of[i, a]]
            place = c.sub0 * VARIABLES
            see(S.seen[place + _FLIGHT], in_flight(S.sub[c.sub0]) * c.payload)
            macc.observe_sender(S.seen, place, A.memory[i, a], now)
            scale(now, macc.SENDER_BOUNDS, A.observations[i, a])
        else:
            link = S.link[A.link_of[i, a - senders]]
            place = (len(S.sub) + A.link_of[i, a - senders]) * VARIABLES
            packets, size = waiting(S, link)
            see(S.seen[place + _QUEUE], packets)
            see(S.seen[place + _WAIT], size * 8_000_000 // max(1, link.rate))
            # CoDel counts a packet when its service begins, the others when it comes.
            see(S.seen[place + _OUT], link.served - (0 if link.queue == CODEL else packets))
            see(S.seen[place + _OFFERED], link.arrived)
            see(S.seen[place + _DROPPED], link.dropped)
            step_s = A.settings[INTERVAL_NS] / 1e9
            loss = macc.observe_router(S.seen, place, A.memory[i, a], step_s, now)
            A.loss_rates[i, a] = loss
            scale(now, macc.ROUTER_BOUNDS, A.observations[i, a])


@inlined
def _take_over(A: Any, S: Any, i: int) -> bool:
    """End slow start of senders that are through it; whether the agents may begin.

    A sender has its steps counted from its own start. All wait for those that start within as
    many steps of the first one, as everybody does in training; later ones join when they come.
    """
    begun = A.intervals[i]
    earliest = -1
    for a in range(A.settings[_SENDERS]):
        if A.mask[i, a]:
            start = S.conn[A.flow_of[i, a]].start // A.settings[INTERVAL_NS]
            if earliest < 0 or start < earliest:
                earliest = start
    through = True
    for a in range(A.settings[_SENDERS]):
        if not A.mask[i, a]:
            continue
        c = S.conn[A.flow_of[i, a]]
        start = c.start // A.settings[INTERVAL_NS]
        s = S.sub[c.sub0]
        if s.agent_cwnd > 0:
            continue
        last = begun - start >= A.settings[_START_INTERVALS]
        if begun > start and (s.cwnd >= A.settings[_START] or s.ca_state != OPEN or last):
            s.agent_cwnd = min(A.settings[_MAX], max(1, s.cwnd))
        elif start - earliest < A.settings[_START_INTERVALS]:
            through = False
    return through


@inlined
def _settle(A: Any, i: int) -> None:
    """Reward the step and see whether it was the last."""
    for a in range(A.mask.shape[1]):
        if not A.mask[i, a]:
            continue
        if a < A.settings[_SENDERS]:
            A.rewards[i, a] = sender_reward(A.values[i, a], A.reward)
        else:
            A.rewards[i, a] = router_reward(A.values[i, a], A.loss_rates[i, a], A.reward)
    A.step_count[i] += 1
    A.truncated[i] = A.step_count[i] >= A.lengths[i]
