"""The compiled loops of all batches share this: where an environment stands, and its interval."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import inlined
from data.netsim.reference import add, call, reference
from data.netsim.state import DONE, NEED_RING

IDLE, ACT, ACTING, BEGIN, BEGINNING = range(5)
"""Where an environment stands: its step is done; to be acted in, under way; to begin, under way."""

PAUSED = NEED_RING + 1
"""An interval stands still so that somebody may look (``pauses``); see `models.envs.stage`."""

SHARED = ("interval_ns", "one_by_one")
"""The first settings of every loop: length of an interval, and whether to come back after each."""
INTERVAL_NS, ONE_BY_ONE = range(len(SHARED))


@inlined
def next_one(thread: int, A: Any) -> int:
    """Take the thread's next environment that isn't idle and that no other has; -1 after the last.

    Each loop's ``run`` goes on with environment ``i`` first, if it isn't -1, and then with those
    that it takes. It comes back with one whose arrays are too small (``needs`` says which), to be
    called again with it, or with -1 when no environment is left.
    """
    while A.cursors[thread, 0] < A.order.shape[1]:
        i = A.order[thread, A.cursors[thread, 0]]
        A.cursors[thread, 0] += 1
        if A.phase[i] != IDLE and add(A.claims, i, 1) == 0:
            A.home[i] = thread
            return int(i)
    add(A.through, 0, 1)
    return -1


@inlined
def begins_interval(A: Any, i: int) -> bool:
    """Whether an interval begins, which is under way from now on."""
    if A.phase[i] != ACT and A.phase[i] != BEGIN:
        return False
    A.phase[i] += 1
    A.intervals[i] += 1
    return True


@inlined
def simulated(event_loop: Any, A: Any, i: int) -> bool:
    """Run to the interval's end; False if the event loop needs something of Python first.

    What happens at the very end belongs to the next interval. A pause before it is one of the
    things that Python is needed for.
    """
    S = reference(A.addresses[i])
    before = S.g.packet_events
    end = A.intervals[i] * A.settings[INTERVAL_NS] - 1
    until = min(end, A.pauses[i])
    status = call(event_loop, A.addresses[i], until)
    if status == DONE and until < end:
        status = PAUSED
    A.work[i] += S.g.packet_events - before
    A.needs[i] = status
    return bool(status == DONE)
