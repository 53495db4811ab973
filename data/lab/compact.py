"""The compact probe log (`.klog.zst`): written from the probe's CSV, expanded back for checks.

The form is in data/lab/README.md.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from backports import zstd

from data.errors import UserError
from data.store import Series

MAGIC = "#cczoo-klog 1"
COLUMNS = "dt_us,sf,ack,rtt_us,cwnd,srtt_us"
KEPT = (
    "ts",
    "ev",
    "token",
    "sfid",
    "sport",
    "dport",
    "ca_state",
    "arg",
    "ack_seq",
    "snd_una",
    "cwnd",
    "srtt_us",
    "rtt_us",
    "total_retrans",
)
LEVEL = 19

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Events:
    """The sender's events of one connection, in time order; one entry of each array an event.

    ``kind`` is 0 for an ACK, 1 for a change of congestion state, 2 for a retransmission.
    ``time_us`` counts from `t0_us` (CLOCK_MONOTONIC); ``ack`` is relative to the subflow's first
    snd_una; ``old`` and ``new`` are congestion states. Numbers of other kinds of events are 0.
    """

    t0_us: int
    time_us: Ints
    kind: Ints
    subflow: Ints
    ack: Ints
    rtt_us: Ints
    cwnd: Ints
    srtt_us: Ints
    old: Ints
    new: Ints


def unwrap(seq: Ints, first: int) -> Ints:
    """32-bit sequence numbers as differences to `first`, continued past the wrap."""
    step = np.diff(seq, prepend=first)
    step = (step + 2**31) % 2**32 - 2**31
    return np.cumsum(step)


def read_probe(
    path: Path, port: int = 5000, *, mptcp: bool = True
) -> tuple[Events, dict[str, Any]]:
    """Read the sender's rows of a probe CSV.

    Parameters
    ----------
    path : Path
        The probe's output (facts of the columns in data/lab/README.md); plain text.
    port : int
        Destination port of the sender's rows.
    mptcp : bool
        Whether the connection is MPTCP; one of plain TCP is subflow 1 of token 0.

    Returns
    -------
    Events
        Subflows numbered 1 and 2 in the order of their `sfid`; at most one connection.
    dict
        ``token``, ``subflows`` ({number: {sport, dport, sfid}}), ``lost_events``, and ``counted``:
        what the kernel's own counters say, ``retransmitted_segments``.

    Raises
    ------
    UserError
        No sender's rows, or rows of several connections.
    """
    raw = path.read_bytes()
    lost = 0
    end = raw.rfind(b"#lost=")
    if end >= 0:
        lost = int(raw[end + 6 :].split(b"\n")[0] or 0)
        raw = raw[:end]
    frame = pl.read_csv(
        io.BytesIO(raw),
        columns=list(KEPT),
        schema_overrides={
            "ts": pl.String, "ev": pl.String, "token": pl.String, **{
                name: pl.Int64 for name in KEPT if name not in ("ts", "ev", "token")
            },
        },
    )  # fmt: skip
    frame = frame.filter(pl.col("dport") == port)
    # A probe row before ULP data is set carries no subflow id: the SYN's own events.
    frame = frame.filter(pl.col("sfid") > 0 if mptcp else pl.col("sfid") == 0)
    if frame.is_empty():
        raise UserError(f"{path}: no rows of a sender to port {port}")
    tokens = frame["token"].unique().to_list()
    if len(tokens) > 1:
        raise UserError(f"{path}: {len(tokens)} connections in one log, expected one")
    return _events(frame), {
        "token": tokens[0],
        "subflows": {
            str(number): {"sfid": sfid, "sport": sport, "dport": port}
            for number, (sfid, sport) in enumerate(_subflows(frame), start=1)
        },
        "lost_events": lost,
        # One event of a retransmission may stand for a buffer of several segments.
        "counted": {
            "retransmitted_segments": int(
                frame.group_by("sport").agg(pl.col("total_retrans").max())["total_retrans"].sum()
            )
        },
    }


def _subflows(frame: pl.DataFrame) -> list[tuple[int, int]]:
    pairs = frame.select("sfid", "sport").unique().sort("sfid", "sport").rows()
    return [(int(sfid), int(sport)) for sfid, sport in pairs]


def _events(frame: pl.DataFrame) -> Events:
    # "1234.567890123": microseconds without passing through a float.
    time_us = (
        frame.select(
            pl.col("ts").str.split_exact(".", 1).struct.field("field_0").cast(pl.Int64) * 1_000_000
            + pl.col("ts")
            .str.split_exact(".", 1)
            .struct.field("field_1")
            .str.slice(0, 6)
            .cast(pl.Int64)
        )
        .to_series()
        .to_numpy()
    )
    order = np.argsort(time_us, kind="stable")
    column = {
        name: frame[name].to_numpy()[order].astype(np.int64)
        for name in KEPT
        if name not in ("ts", "ev", "token")
    }
    time_us = time_us[order].astype(np.int64)
    kinds = frame["ev"].replace_strict({"probe": 0, "state": 1, "rtx": 2}, default=-1)
    kind = kinds.to_numpy()[order].astype(np.int64)
    subflow = np.zeros(len(kind), np.int64)
    ack = np.zeros(len(kind), np.int64)
    keep = kind >= 0
    for number, (_, sport) in enumerate(_subflows(frame), start=1):
        mine = column["sport"] == sport
        subflow[mine] = number
        probes = np.flatnonzero(mine & (kind == 0))
        if not len(probes):
            continue
        ack[probes] = unwrap(column["ack_seq"][probes], int(column["snd_una"][probes[0]]))
        state = np.column_stack([ack[probes], column["rtt_us"][probes], column["cwnd"][probes]])
        # An ACK in which nothing changed is a pure duplicate; the first row always differs.
        same = np.zeros(len(probes), bool)
        same[1:] = (np.diff(state, axis=0) == 0).all(axis=1)
        keep[probes[same]] = False
    is_ack, is_state = kind == 0, kind == 1
    raw_missing = is_ack & (column["rtt_us"] == 0)
    return Events(
        t0_us=int(time_us[keep][0]),
        time_us=time_us[keep] - time_us[keep][0],
        kind=kind[keep],
        subflow=subflow[keep],
        ack=ack[keep],
        rtt_us=np.where(is_ack, column["rtt_us"], 0)[keep],
        cwnd=np.where(is_ack, column["cwnd"], 0)[keep],
        srtt_us=np.where(raw_missing, column["srtt_us"], 0)[keep],
        old=np.where(is_state, column["ca_state"], 0)[keep],
        new=np.where(is_state, column["arg"], 0)[keep],
    )


def _difference(values: Ints, events: Events, rows: npt.NDArray[np.bool_]) -> Ints:
    """Difference of each chosen row's value to the same subflow's previous chosen one."""
    out = np.zeros(len(values), np.int64)
    for number in np.unique(events.subflow):
        mine = np.flatnonzero(rows & (events.subflow == number))
        out[mine] = np.diff(values[mine], prepend=0)
    return out


def series(events: Events) -> Series:
    """ACKs, RTTs and retransmissions of each subflow, as `cczoo ingest` makes them of the log.

    Returns
    -------
    Series
        ``ack`` if it advances; ``rtt_us`` at the ACK that it belongs to, the one before the row
        it stands in; ``retransmit``, each if there is any.
    """
    found: Series = {}
    for number in np.unique(events.subflow):
        mine = events.subflow == number
        rows = np.flatnonzero(mine & (events.kind == 0))
        time_us, ack, rtt_us = events.time_us[rows], events.ack[rows], events.rtt_us[rows]
        high = np.maximum.accumulate(np.concatenate([[0], ack]))
        advanced = ack > high[:-1]
        measured = (rtt_us[1:] > 0) & (advanced[:-1] | (np.diff(rtt_us) != 0))
        again = events.time_us[mine & (events.kind == 2)]
        columns = {
            "ack": (time_us[advanced], ack[advanced]),
            "rtt_us": (time_us[:-1][measured], rtt_us[1:][measured]),
            "retransmit": (again, np.ones(len(again), np.int64)),
        }
        found[int(number)] = {name: pair for name, pair in columns.items() if len(pair[0])}
    return found


def encode(events: Events, meta: dict[str, Any]) -> bytes:
    """Compact text of `events`, uncompressed.

    Parameters
    ----------
    events : Events
        What to write.
    meta : dict
        The `#meta` line; ``t0_us`` is added.

    Returns
    -------
    bytes
        The text under the zstd layer.
    """
    is_ack = events.kind == 0
    dt = np.diff(events.time_us, prepend=0)
    fields = [
        _difference(events.ack, events, is_ack),
        _difference(events.rtt_us, events, is_ack),
        _difference(events.cwnd, events, is_ack),
        _difference(events.srtt_us, events, is_ack & (events.srtt_us != 0)),
    ]
    frame = pl.DataFrame({"dt": dt, "sf": events.subflow, "kind": events.kind,
                          "old": events.old, "new": events.new,
                          **{f"f{i}": field for i, field in enumerate(fields)}})  # fmt: skip

    def text(name: str) -> pl.Expr:
        return pl.when(pl.col(name) == 0).then(pl.lit("")).otherwise(pl.col(name).cast(pl.String))

    comma = pl.lit(",")
    head = [pl.col("dt").cast(pl.String), comma]
    flow = pl.col("sf").cast(pl.String)
    ack = pl.concat_str(*head, flow, comma, text("f0"), comma, text("f1"), comma, text("f2"),
                        comma, text("f3"))  # fmt: skip
    state = pl.concat_str(*head, pl.lit("S,"), flow, comma, "old", comma, "new")
    rtx = pl.concat_str(*head, pl.lit("R,"), flow)
    lines = frame.select(
        pl.when(pl.col("kind") == 0)
        .then(ack)
        .when(pl.col("kind") == 1)
        .then(state)
        .otherwise(rtx)
        .str.join("\n")
    ).item()
    header = json.dumps({"t0_us": events.t0_us, **meta}, separators=(",", ":"))
    return f"{MAGIC}\n#meta {header}\n#columns {COLUMNS}\n{lines}\n".encode()


def write(path: Path, events: Events, meta: dict[str, Any]) -> int:
    """Write a `.klog.zst` under a temporary name, then rename; returns its size in bytes."""
    packed = zstd.compress(encode(events, meta), LEVEL)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(packed)
    os.replace(temporary, path)
    return len(packed)


def expand(path: Path) -> tuple[Events, dict[str, Any]]:
    """Read a `.klog.zst` back into events; the exact inverse of `write`.

    Returns
    -------
    Events
        As they were written.
    dict
        The `#meta` line.

    Raises
    ------
    UserError
        Not a compact probe log.
    """
    try:
        text = zstd.decompress(path.read_bytes()).decode()
    except (zstd.ZstdError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a compact probe log: {error}") from None
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] != MAGIC:
        raise UserError(f"{path}: not a compact probe log: first line is not {MAGIC!r}")
    meta: dict[str, Any] = json.loads(lines[1].removeprefix("#meta "))
    last: dict[str, list[int]] = {}
    rows: list[tuple[int, ...]] = []
    now = 0
    for line in lines[3:]:
        part = line.split(",")
        now += int(part[0])
        if part[1] == "S":
            rows.append((now, 1, int(part[2]), 0, 0, 0, 0, int(part[3]), int(part[4])))
        elif part[1] == "R":
            rows.append((now, 2, int(part[2]), 0, 0, 0, 0, 0, 0))
        else:
            value = last.setdefault(part[1], [0, 0, 0, 0])
            for i, field in enumerate(part[2:6]):
                value[i] += int(field or 0)
            # srtt_us stands only in rows without a raw RTT.
            srtt = value[3] if value[1] == 0 else 0
            rows.append((now, 0, int(part[1]), *value[:3], srtt, 0, 0))
    table = np.array(rows, np.int64).reshape(len(rows), 9)
    time_us, kind, subflow, ack, rtt_us, cwnd, srtt_us, old, new = table.T
    t0_us = int(meta["t0_us"])
    return Events(t0_us, time_us, kind, subflow, ack, rtt_us, cwnd, srtt_us, old, new), meta
