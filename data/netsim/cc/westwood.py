"""Westwood+: Mascolo et al. 2001, Grieco and Mascolo 2004; Linux' tcp_westwood.c."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.state import CWR, LOSS, OPEN, RECOVERY

SUMMARY = "Westwood+: after a loss, the window that the estimated bandwidth fills (tcp_westwood.c)"
FIELDS = {
    "we_raw": "f8", "we_bw": "f8", "we_count": "i8", "we_start": "i8", "we_min": "i8",
    "we_renew": "i8",
}  # fmt: skip
_WINDOW = 50_000_000


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.we_start = now
    s.we_min = s.srtt


@compiled
def _fair(s: Any) -> int:
    return int(max(2, int(s.we_bw * s.we_min)))


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Filter the delivery rate, once per RTT and at least every 50 ms."""
    s.we_count += acked
    if rtt >= 0:
        if s.we_renew != 0:
            s.we_min = rtt
            s.we_renew = 0
        s.we_min = min(s.we_min, rtt)
    span = now - s.we_start
    if span > max(s.last_rtt, _WINDOW):
        sample = s.we_count / span
        if s.we_bw == 0.0 and s.we_raw == 0.0:
            s.we_raw = sample
            s.we_bw = sample
        else:
            s.we_raw = (7.0 * s.we_raw + sample) / 8.0
            s.we_bw = (7.0 * s.we_bw + s.we_raw) / 8.0
        s.we_count = 0
        s.we_start = now


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """After a reduction the window is the bandwidth-delay product."""
    if state == OPEN and (s.ca_state == CWR or s.ca_state == RECOVERY):
        s.cwnd = _fair(s)
        s.ssthresh = s.cwnd
    elif state == LOSS:
        s.ssthresh = _fair(s)
        s.we_renew = 1
