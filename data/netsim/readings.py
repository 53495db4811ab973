"""Reads of a running simulation what no ACK carries, for an agent at the end of its interval.

A *place* is what samples are of: the subflows of all connections first, then the links. The
compiled loops of `models.envs` read by these functions.
"""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled, entry
from data.netsim.reference import reference


@compiled
def in_flight(s: Any) -> int:
    """Segments of a subflow sent and neither acknowledged nor held lost (RFC 6675's pipe)."""
    return int(s.snd_nxt - s.snd_una - s.sacked_out - s.lost_out + s.retrans_out)


@compiled
def waiting(S: Any, link: Any) -> Any:
    """Packets and bytes that wait in a link's queue now.

    The link's own counts are brought up to date when a packet arrives; until then they have
    packets whose service has begun.
    """
    count, size, p = link.q_packets, link.q_bytes, link.qhead
    while p >= 0 and S.pkt[p].start <= S.g.now:
        count -= 1
        size -= S.pkt[p].wire
        p = S.pkt[p].next
    return count, size


@entry
def subflow_in_flight(address: Any, sub: int) -> int:
    """`in_flight` of a subflow by its place, of the network at an address."""
    return in_flight(reference(address).sub[sub])


@entry
def link_waiting(address: Any, link: int) -> Any:
    """`waiting` of a link by its number, of the network at an address."""
    S = reference(address)
    return waiting(S, S.link[link])
