"""A parsed log has events, connections and a quarantine, with these columns, types and units.

An *ingested directory* holds::

    events/part-*.parquet    events of one connection after another, in the order of the names
    connections.parquet      one row per connection
    quarantine.parquet       lines that could not be understood, and why
    ingest.json              the counts, and the names of all these files

Every value is an integer in a base unit (microseconds, bytes, segments, bits per second), so
that nothing is rounded on the way from the kernel.
"""

from __future__ import annotations

from arro3.core import DataType, Field, Schema

_TEXT, _INT16, _INT64 = DataType.utf8(), DataType.int16(), DataType.int64()

EVENTS = Schema(
    [
        Field("connection", DataType.dictionary(DataType.int32(), _TEXT)),
        Field("subflow", _INT16),
        Field("time_us", _INT64),
        Field("variable", DataType.dictionary(DataType.int8(), _TEXT)),
        Field("value", _INT64),
    ]
)
"""One row per observed value of a state variable. ``time_us`` is the log's own clock."""

VARIABLES = {
    "rtt_us": "raw round-trip time of one ACK, at the time of that ACK (us)",
    "srtt_us": "smoothed round-trip time, where the log has no raw one (us)",
    "ca_state": "congestion state entered: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss",
    "ack": "highest acknowledged byte since the subflow's first event (bytes, unwrapped)",
    "snd_cwnd": "congestion window (segments)",
    "retransmit": "a segment was sent again (segments, counted per event)",
    "throughput_bps": "rate over the log's own interval (bit/s)",
    "capacity_bps": "capacity of a link from this time on (bit/s)",
}
"""Names of ``variable`` and their units; a new variable is one line here."""

SAMPLED = {
    "delivered_bytes": "data that the sender knows to have arrived, in order or not (bytes)",
    "received_bytes": "data that has arrived, each byte counted once, since the start (bytes)",
    "rcv_wnd_bytes": "window that the receiver announces (bytes)",
    "rcv_queue_bytes": "data that the receiver holds for want of earlier data (bytes)",
    "owd_us": "mean one-way delay of the segments that came since the last value (us)",
    "target_delay_us": "queueing delay that the receiver of Nuwa aims at, its T_d (us)",
    "gain_milli": "k of Nuwa's control, which an agent may set (thousandths)",
    "in_flight_bytes": "data sent and neither acknowledged nor held lost (bytes)",
    "queue_packets": "packets that wait in a link's queue (packets)",
    "queue_delay_us": "time that a packet arriving now would wait in a link's queue (us)",
    "dequeued_packets": "packets that have left a link's queue since the start (packets)",
    "offered_packets": "packets that have come to a link since the start (packets)",
    "dropped_packets": "packets that a link's queue has refused since the start (packets)",
}
"""Further ones, which agents read at their own times (`data.netsim.readings`)."""

SUBFLOW = [
    Field("subflow", _INT16),
    Field("sport", DataType.int32()),
    Field("dport", DataType.int32()),
    Field("min_rtt_us", _INT64),
    Field("rtt_kind", _TEXT),
    Field("events", _INT64),
]
"""Per subflow: ports (-1 unknown), smallest RTT (-1 none) and ``rtt_kind`` raw, srtt or none."""

SUBFLOWS = DataType.list(Field("element", DataType.struct(SUBFLOW)))

CONNECTIONS = Schema(
    [
        Field("connection", _TEXT),
        Field("source", _TEXT),
        Field("format", _TEXT),
        Field("token", _TEXT),
        Field("label", _TEXT),
        Field("dataset", _TEXT),
        Field("kernel", _TEXT),
        Field("cc", _TEXT),
        Field("start_us", _INT64),
        Field("end_us", _INT64),
        Field("subflows", SUBFLOWS),
    ]
)
"""Fixed columns (null if unknown); further columns of the labels file follow, as strings."""

QUARANTINE = Schema(
    [
        Field("source", _TEXT),
        Field("line", _INT64),
        Field("count", _INT64),
        Field("byte_offset", _INT64),
        Field("reason", _TEXT),
        Field("text", _TEXT),
    ]
)
"""A row is ``count`` adjacent lines that agree in ``reason`` and ``text`` (cut at 200 characters).

``line`` (from 1) and ``byte_offset`` (from 0 in the decompressed file) are those of the first.
"""

LABELS = ("SB", "NSB")
"""Shared bottleneck and non-shared bottleneck."""

CONGESTED_STATES = (3, 4)
"""Recovery and Loss: smartsbd.txt section 3.1 calls these two congested."""
