"""The arrays that hold a simulation: records of links, subflows, connections, packets.

Times are nanoseconds, sizes bytes or segments, rates bit/s, all int64, unless a name says
otherwise. Index -1 means "none". No field may bear a name that numpy's records have (size, data).
"""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np

FAR = 1 << 62
"""A time that never comes (ns)."""
UNLIMITED = 1 << 40
"""A window or queue that is never reached (segments, packets, bytes)."""

# Kinds of events.
EV_LINK, EV_FREE, EV_PACKET, EV_RTO, EV_PACE, EV_DELACK, EV_REO, EV_START, EV_STOP, EV_APP = range(
    10
)
EV_SOURCE = 10

# Kinds of packets.
DATA, ACK, SYN, SYNACK, UDP = range(5)

# Congestion states, as in the kernel (data.schema: ca_state).
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)

# Flags of a segment in the sender's ring.
F_SACKED, F_LOST, F_RETRANS, F_EVER = 1, 2, 4, 8

# Queue disciplines, loss models, schedulers: see data.netsim.aqm, links, mptcp.
DROPTAIL, RED, PIE, CODEL, AGENT_DROP = range(5)
QUEUES = {"droptail": DROPTAIL, "red": RED, "pie": PIE, "codel": CODEL, "agent": AGENT_DROP}
NO_LOSS, BERNOULLI, GILBERT = range(3)
MINRTT, ROUND_ROBIN, REDUNDANT, QOS = range(4)
SCHEDULERS = {
    "minrtt": MINRTT, "roundrobin": ROUND_ROBIN, "redundant": REDUNDANT, "qos": QOS,
}  # fmt: skip

# Why the event loop came back before its time.
DONE, NEED_PACKETS, NEED_LOG, NEED_HEAP, NEED_RING = range(5)

# Logged variables, in this order, by the names of data.schema.VARIABLES.
LOG_VARIABLES = ("rtt_us", "ca_state", "ack", "snd_cwnd", "retransmit")
LOG_RTT, LOG_STATE, LOG_ACK, LOG_CWND, LOG_RETRANSMIT = range(5)

VARIABLES = 32
"""Room for the variables of a place that an agent may observe (`data.netsim.seen.NAMES`)."""
LOGGED, WATCHED = 1, 2
"""What becomes of observations: they are kept as a log, summed up per interval, or both."""

BURST = 256
"""Segments one event may send on a connection; the rest follows at the same time."""

FIRST_RING = 16
"""Segments a subflow's ring has at least; it becomes longer and shorter with the window."""

HISTOGRAM_BINS = 1000
"""RTT histogram: 32 bins an octave of microseconds (relative width 3 %)."""

LINE = 64
"""Bytes of a cache line."""


def record(**fields: str) -> Any:
    """Aligned record type whose elements allow attribute access in plain Python too.

    Records longer than half a cache line take whole ones: none lies in one more than it needs.
    """
    plain: Any = np.dtype(list(fields.items()), align=True)
    if plain.itemsize > LINE // 2 and plain.itemsize % LINE:
        names = list(fields)
        plain = np.dtype(
            {
                "names": names,
                "formats": list(fields.values()),
                "offsets": [plain.fields[name][1] for name in names],
                "itemsize": -(-plain.itemsize // LINE) * LINE,
                "aligned": True,
            }
        )
    return np.dtype((np.record, plain))


def zeros(count: int, kind: Any) -> np.ndarray[Any, Any]:
    """Array of zeros that begins with a cache line."""
    size = count * np.dtype(kind).itemsize
    memory = np.zeros(size + LINE, np.uint8)
    at = -memory.ctypes.data % LINE
    return memory[at : at + size].view(kind)


GLOBAL = record(
    now="i8", seq="i8", heap_n="i8", free_head="i8", free_n="i8", status="i8", log_n="i8",
    log_on="i8", events="i8", packet_events="i8", ring_end="i8", ring_need="i8",
)  # fmt: skip

HEAP = record(t="i8", seq="i8", kind="i8", index="i8")

# What every packet needs fits a cache line; what follows is an ACK's.
PACKET = record(
    t="i8", seq="i8", start="i8", n="i8", sent="i8", wire="i8",
    next="i4", route="i4", owner="i4", kind="i2", ce="i2",
    dsn="i8", order="i8", grant="i8", marks="i8",
)  # fmt: skip

LINK = record(
    # what every packet needs, first, so that it lies in few cache lines: what the link is
    rate="i8", rate_mode="i8", delay="i8", delay_n="i8", jitter="i8", reorder="i8", late="f8",
    limit_packets="i8", limit_bytes="i8", queue="i8", mark_packets="i8", loss_model="i8",
    loss_exit="i8",
    # what is on it: head .. tail in order of delivery; qhead the first that waits
    head="i8", tail="i8", qhead="i8", q_packets="i8", q_bytes="i8", flight="i8", free_at="i8",
    last_t="i8",
    # counts
    arrived="i8", delivered="i8", bytes_out="i8", wait_sum="i8", wait_max="i8", served="i8",
    dropped="i8", lost="i8", marked="i8",
    # series of rates and delays, and cursors in them
    rate_off="i8", rate_n="i8", rate_period="i8", rate_i="i8", rate_base="i8",
    delay_off="i8", delay_period="i8", delay_i="i8", delay_base="i8", opportunity_t="i8",
    opportunity_left="i8",
    # loss, lateness, ECN, CoDel's queue
    late_power="f8", loss_good="f8", loss_bad="f8", to_bad="f8", to_good="f8", bad="i8", ecn="i8",
    wait_head="i8", wait_tail="i8", busy="i8",
    # AQM state
    agent_p="f8", min_th="f8", max_th="f8", max_p="f8", weight="f8", avg="f8", red_count="i8",
    idle_since="i8", gentle="i8", target="i8", interval="i8", drop_p="f8", old_delay="i8",
    next_update="i8", burst_left="i8", cd_first="i8", cd_next="i8", cd_count="i8",
    cd_last="i8", cd_dropping="i8",
)  # fmt: skip

SOURCE = record(
    route="i8", interval="i8", wire="i8", poisson="i8", on="i8", off="i8", random_on="i8",
    until="i8", stop="i8", sent="i8", received="i8", delay_sum="i8",
)  # fmt: skip

CONNECTION = record(
    # what every packet needs
    sub0="i8", sub_n="i8", scheduler="i8", next_sub="i8", data_nxt="i8", data_end="i8",
    data_una="i8", data_rcv="i8",
    window="i8", edge="i8", inject_head="i8", inject_tail="i8", done_t="i8", coupled_t="i8",
    alpha="f8", payload="i8",
    # the rest
    start="i8", stop="i8", started="i8", total="i8", app_interval="i8", app_chunk="i8",
    meta_off="i8", meta_mask="i8", inject_off="i8", inject_mask="i8", duplicates="i8",
    ring_need="i8", held="i8", held_t="i8", held_sum="i8",
)  # fmt: skip

# Eight to a cache line, those that are needed together side by side.
_SUBFLOW_INTEGERS = """
    # what data that arrives needs
    ring mask cc conn rcv_nxt order pending pending_t
    pending_ce quick ack_every read_every delack_at delack_ev ack_size back
    owd_sum owd_n received rx_window seen acks clamp own
    # what an ACK needs; rs_* for the rate sample (tcp_rate.c) alone
    snd_una snd_nxt sacked_out lost_out retrans_out to_retx cwnd delivered
    cwnd_cnt ssthresh cwnd_limited max_out usage_seq ca_state undo fack
    srtt rttvar rto rto_min backoff min_rtt last_rtt stale
    rto_at rto_ev tlp tlp_seq rack_t rack_seq rack_rtt reordering
    reo_at sent_head sent_tail last_sent sent rtt_sum rtt_n established
    delivered_t first_tx app_limited pacing wire ecn forward payload
    rs_prior rs_prior_t rs_first_tx rs_last_tx rs_delivered rs_interval rs_app_limited rs_rtt
    rs_losses ce_acked lost per_ack rate mss retx_hint high_seq
    # ends of recovery, timers, pacing, what an agent or a user sets
    mask_max room redundant_nxt prior_cwnd prior_ssthresh prr_delivered prr_out retrans_stamp
    pace_next tlp_t reo_ev pace_at pace_ev pace_burst ack_delay agent_cwnd target_delay
    random retransmitted timeouts granted
    # what the QoS scheduler keeps: its own queue, and the period of its loss rate
    queue_from queue_to period period_begin period_sent period_lost period_rtt_sum period_rtt_n
    rtt_low rtt_high
"""

SUBFLOW_FIELDS = {
    name: "i8"
    for line in _SUBFLOW_INTEGERS.splitlines()
    for name in line.split()
    if not line.strip().startswith("#")
} | {"pacing_rate": "f8", "agent_k": "f8", "growth": "f8", "loss_seen": "f8"}
"""Fields of a subflow's record; `pacing_rate` in bytes/s, `agent_k` Nuwa's k."""

# Two in a cache line: with many flows these are much of what an event touches.
SEGMENT = record(sent="i8", dsn="i8", bits="i4", prev="i4", next="i4")

RATE = record(delivered="i8", delivered_t="i8", first_tx="i8", app_limited="i8")
"""What a segment keeps for the rate sample (tcp_rate.c), if a control takes one."""

ARRIVAL = record(came="i8", nth="i8")
"""Entry of the ring in which a receiver notes arrivals, by two separate indices.

At the place of segment n, ``came`` is n once the segment has arrived. At the place of arrival k
(the k-th segment to arrive), ``nth`` is the number of the segment that arrived then.
"""

LOG = record(t="i8", sub="i8", variable="i8", value="i8")

SEEN = record(n="i8", total="i8", least="i8", last="i8")
"""What a variable's values of one decision interval come to; ``total`` is their sum."""

State = namedtuple(
    "State",
    "g heap pkt link route series_t series_v conn sub tx rate rx meta inject src rng log hist seen",
)
"""All arrays of one simulation."""


@functools.cache
def subflow_type(extra: tuple[tuple[str, str], ...]) -> Any:
    """Record of a subflow with the fields of the congestion controls at its end.

    One object for all simulations: numba knows an array's type at once by its ``dtype`` itself,
    but takes ten microseconds in every call to find that another one is equal.
    """
    return record(**SUBFLOW_FIELDS, **dict(extra))


def example() -> State:
    """The smallest state, which has the types of every other."""
    from data.netsim.cc import fields

    kinds = {"heap": HEAP, "pkt": PACKET, "link": LINK, "conn": CONNECTION, "tx": SEGMENT,
             "sub": subflow_type(fields()), "rate": RATE, "rx": ARRIVAL, "src": SOURCE,
             "log": LOG, "seen": SEEN}  # fmt: skip
    plain = ("route", "series_t", "series_v", "meta", "inject")
    return State(
        g=zeros(1, GLOBAL)[0],
        rng=np.zeros((1, 6), np.int64),
        hist=np.zeros((1, HISTOGRAM_BINS), np.int64),
        **{name: zeros(1, kind) for name, kind in kinds.items()},
        **{name: np.zeros(1, np.int64) for name in plain},
    )
