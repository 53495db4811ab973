"""An agent sets the window from outside, at its own interval (tcco.txt section III.C)."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import slow_start
from data.netsim.jit import compiled

SUMMARY = "agent: the window follows agent_cwnd, per ACK and never above it"
OWN_WINDOW = True


@compiled
def control(subs: Any, c: Any, s: Any, acked: int, flight: int, now: int) -> bool:
    """Move to the target by what was acknowledged; without a target, slow start until a loss."""
    if s.agent_cwnd < 1:
        if s.cwnd < s.ssthresh:
            slow_start(s, acked)
        else:
            s.cwnd = s.ssthresh
    elif s.cwnd < s.agent_cwnd:
        s.cwnd = min(s.agent_cwnd, s.cwnd + acked)
    else:
        s.cwnd = s.agent_cwnd
    return True
