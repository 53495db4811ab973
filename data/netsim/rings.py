"""A subflow's ring of segments: as long as its window needs, so that many flows fit the caches."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.state import BURST, FAR, FIRST_RING


def ring_need(length: int) -> int:
    """Room that a ring could take in one event, which sends ``BURST`` segments and a few more.

    From ``BURST`` places on that may be two doublings: six times as many.
    """
    return 2 * max(length, 4 * BURST)


@compiled
def number(s: Any, i: int) -> int:
    """Number of the unacknowledged segment at a place of the ring."""
    return int(s.snd_una + ((i - s.ring - s.snd_una) & s.mask))


@compiled
def longer_ring(S: Any, s: Any) -> None:
    """Double a ring, in its place or at the end of all; the event loop has made room before."""
    mask = 2 * s.mask + 1
    if mask <= s.room:
        _move(S, s, s.ring, mask)
        return
    g = S.g
    c = S.conn[s.conn]
    _move(S, s, g.ring_end, mask)
    g.ring_end += mask + 1
    s.room = mask
    if mask >= 4 * BURST:
        c.ring_need += mask + 1
        g.ring_need = max(g.ring_need, c.ring_need)


@compiled
def shorter_ring(S: Any, s: Any) -> None:
    """Give a ring the length its window needs; the rest of its room stays reserved for it.

    Called before a segment of a number that ``FIRST_RING`` divides is sent.
    """
    need = max(s.snd_nxt - s.snd_una, s.cwnd)
    if s.ssthresh < FAR:
        need = max(need, s.ssthresh)
    need += need >> 1
    mask = FIRST_RING - 1
    while mask < need:
        mask = 2 * mask + 1
    # Places that follow each other move together, and none to where another was.
    if 2 * mask < s.mask and s.snd_nxt & mask == 0:
        _move(S, s, s.ring, mask)


@compiled
def _move(S: Any, s: Any, ring: int, mask: int) -> None:
    """Move the segments under way; none goes to the old place of one that has yet to move."""
    for n in range(s.snd_una, s.snd_nxt):
        i = s.ring + (n & s.mask)
        j = ring + (n & mask)
        if i != j:
            S.tx[j] = S.tx[i]
            S.rate[j] = S.rate[i]
            S.rx[j] = S.rx[i]
    # The list of transmissions in order of sending goes by place.
    for n in range(s.snd_una, s.snd_nxt):
        X = S.tx[ring + (n & mask)]
        X.prev = _moved(s, X.prev, ring, mask)
        X.next = _moved(s, X.next, ring, mask)
    s.sent_head = _moved(s, s.sent_head, ring, mask)
    s.sent_tail = _moved(s, s.sent_tail, ring, mask)
    s.ring = ring
    s.mask = mask


@compiled
def _moved(s: Any, i: int, ring: int, mask: int) -> int:
    return ring + (number(s, i) & mask) if i >= 0 else -1
