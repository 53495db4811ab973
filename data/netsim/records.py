"""Fill the record of a new subflow, and double arrays that are full."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.netsim import state as st
from data.netsim.cc import module, number
from data.netsim.elements import Flow

PLAIN_HEADER_BYTES = 52
"""IPv4, TCP and timestamps."""
MAX_QUICK_ACKS = 16
"""TCP_MAX_QUICKACKS of Linux."""


def fill_subflow(s: Any, flow: Flow, name: str, first: bool) -> None:
    """Set a new subflow's record: its control by name, its flow's settings, nothing sent yet.

    While the receive window grows at a connection's start the kernel acknowledges each segment
    (tcp_grow_window); a subflow that joins has only the ACKs of TCP_MAX_QUICKACKS.
    """
    control = module(name)
    s["cc"] = number(name)
    s["own"] = getattr(control, "OWN_WINDOW", False)
    s["wire"] = flow.segment_bytes + flow.header_bytes
    s["payload"] = flow.segment_bytes
    # What TCP reckons with (mss_cache): MPTCP's options make segments smaller afterwards.
    options = max(0, flow.header_bytes - PLAIN_HEADER_BYTES) if len(flow.paths) > 1 else 0
    s["mss"] = flow.segment_bytes + options
    s["ack_size"] = flow.header_bytes
    s["rate"] = getattr(control, "RATE_SAMPLE", False)
    wants_ecn = getattr(control, "ECN", False) if flow.ecn is None else flow.ecn
    s["ecn"] = 0 if wants_ecn else -1
    s["cwnd"], s["ssthresh"], s["clamp"] = flow.initial_cwnd, st.FAR, st.UNLIMITED
    s["rto"], s["rto_min"] = 1_000_000_000, round(flow.rto_min_ms * 1e6)
    pacing = getattr(control, "PACING", 0)
    s["pacing"] = int(flow.pacing) if flow.pacing is not None and pacing != 2 else pacing
    s["ack_every"] = flow.ack_every
    s["quick"] = flow.quick_acks if first else min(flow.quick_acks, MAX_QUICK_ACKS)
    s["ack_delay"] = round(flow.ack_delay_ms * 1e6)
    s["read_every"] = round(flow.read_every_ms * 1e6)
    s["agent_k"], s["target_delay"] = flow.k, round(flow.target_delay_ms * 1e6)
    s["rx_window"] = s["granted"] = st.UNLIMITED
    s["per_ack"] = not flow.byte_counting
    for field in ("min_rtt", "rto_at", "rto_ev", "reo_at", "reo_ev", "pace_at", "pace_ev",
                  "delack_at", "delack_ev"):  # fmt: skip
        s[field] = st.FAR
    for field in ("sent_head", "sent_tail", "last_sent", "rack_t", "tlp_seq", "retrans_stamp",
                  "undo", "agent_cwnd", "last_rtt"):  # fmt: skip
        s[field] = -1


def doubled(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of twice the length that begins as the given one."""
    longer = st.zeros(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer
