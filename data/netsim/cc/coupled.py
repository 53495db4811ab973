"""The coupled controls of MPTCP share these sums over the subflows of a connection."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled


@compiled
def total_rate(subs: Any, c: Any) -> float:
    """Sum of window over smoothed RTT (segments/s), as in RFC 6356 and the other two drafts."""
    rate = 0.0
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = subs[k]
        if o.established != 0:
            rate += o.cwnd / (o.srtt / 1e9)
    return rate
