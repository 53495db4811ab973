"""DCTCP: RFC 8257; Linux' tcp_dctcp.c (g 1/16). Every mark is echoed exactly."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.state import RECOVERY

SUMMARY = "DCTCP: decrease in proportion to the share of ECN marks (RFC 8257)"
ECN = True
FIELDS = {"dc_alpha": "f8", "dc_end": "i8", "dc_acked": "i8", "dc_marked": "i8"}


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Assume full congestion first."""
    s.dc_alpha = 1.0
    s.dc_end = s.snd_nxt


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Count marks; once a window renew alpha."""
    s.dc_acked += acked
    s.dc_marked += min(marks, acked)
    if s.snd_una > s.dc_end:
        share = s.dc_marked / max(1, s.dc_acked)
        s.dc_alpha += (share - s.dc_alpha) / 16.0
        s.dc_end = s.snd_nxt
        s.dc_acked = 0
        s.dc_marked = 0


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """The window less half its share alpha."""
    return int(max(2, int(s.cwnd - s.cwnd * s.dc_alpha / 2.0)))


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """A lost segment halves the window, as in Reno."""
    if state == RECOVERY and s.ca_state != RECOVERY:
        s.ssthresh = max(s.cwnd >> 1, 2)
