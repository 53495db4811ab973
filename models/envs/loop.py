"""The compiled loops of all batches share this: where an environment stands, and its interval."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.reference import call, reference, take
from data.netsim.state import DONE

IDLE, ACT, ACTING, BEGIN, BEGINNING = range(5)
"""Where an environment stands: its step is done; to be acted in, under way; to begin, under way."""

SHARED = ("interval_ns", "one_by_one")
"""The first settings of every loop: length of an interval, and whether to come back after each."""
INTERVAL_NS, ONE_BY_ONE = range(len(SHARED))


@compiled
def next_one(counter: Any, A: Any) -> int:
    """Take environments by the threads' counter until one isn't idle; -1 after the last.

    Each loop's ``run`` goes on with environment ``i`` first, if it isn't -1, and then with those
    that it takes. It comes back with one whose arrays are too small (``needs`` says which), to be
    called again with it, or with -1 when all are done.
    """
    place = take(counter)
    while place < len(A.order):
        i = A.order[place]
        if A.phase[i] != IDLE:
            return int(i)
        place = take(counter)
    return -1


@compiled
def begins_interval(A: Any, i: int) -> bool:
    """Whether an interval begins, which is under way from now on."""
    if A.phase[i] != ACT and A.phase[i] != BEGIN:
        return False
    A.phase[i] += 1
    A.intervals[i] += 1
    return True


@compiled
def simulated(event_loop: Any, A: Any, i: int) -> bool:
    """Run to the interval's end; False if the event loop needs something of Python first.

    What happens at the very end belongs to the next interval.
    """
    S = reference(A.addresses[i])
    before = S.g.packet_events
    status = call(event_loop, A.addresses[i], A.intervals[i] * A.settings[INTERVAL_NS] - 1)
    A.work[i] += S.g.packet_events - before
    A.needs[i] = status
    return bool(status == DONE)
