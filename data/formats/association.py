"""In a log without MPTCP tokens, sockets become subflows of connections by a rule.

The rule: sockets that send more than they receive and have one server endpoint (the end, remote or
local, that most of them share) are subflows of one connection while their lifetimes overlap; those
that mainly receive are grouped among themselves. A log of several clients of one server at once
can't be told apart this way: give such logs a token, or one file per connection.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from data.formats.base import Socket

End = tuple[object, int]


@dataclass(frozen=True)
class Flow:
    """One socket: its two ends (address in any form, port), lifetime and direction."""

    local: End
    remote: End
    first_us: int
    last_us: int
    sends: bool


def associate(flows: list[Flow]) -> list[Socket]:
    """Give each flow its connection and subflow number.

    Parameters
    ----------
    flows : list of Flow
        All sockets of a file.

    Returns
    -------
    list of Socket
        In the same order; subflows are numbered from 1 by the time of their first event.
    """
    shared = Counter((flow.sends, "remote", flow.remote) for flow in flows)
    shared.update((flow.sends, "local", flow.local) for flow in flows)
    groups: dict[tuple[bool, str, End], list[int]] = defaultdict(list)
    for i, flow in enumerate(flows):
        remote = (flow.sends, "remote", flow.remote)
        local = (flow.sends, "local", flow.local)
        groups[local if shared[local] > shared[remote] else remote].append(i)
    sockets = [Socket("", 1, flow.local[1], flow.remote[1], sends=flow.sends) for flow in flows]
    taken: Counter[str] = Counter()
    for members in groups.values():
        for cluster in _overlapping(flows, members):
            first = flows[cluster[0]]
            name = f"{first.local[1]}-{first.remote[1]}"
            taken[name] += 1
            if taken[name] > 1:
                name += f".{taken[name]}"
            for number, i in enumerate(cluster, start=1):
                sockets[i].connection, sockets[i].subflow = name, number
    return sockets


def _overlapping(flows: list[Flow], members: list[int]) -> list[list[int]]:
    """Split into clusters whose lifetimes hang together."""
    clusters: list[list[int]] = []
    end_us = 0
    for i in sorted(members, key=lambda i: (flows[i].first_us, i)):
        if clusters and flows[i].first_us <= end_us:
            clusters[-1].append(i)
            end_us = max(end_us, flows[i].last_us)
        else:
            clusters.append([i])
            end_us = flows[i].last_us
    return clusters
