"""The log of the probe without BPF: kernel text as it is, checked, ordered and compressed.

It has no raw RTT and no MPTCP token; runs are judged by the smoothed RTT instead.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from backports import zstd

from data.errors import UserError
from data.lab import compact, topology

SUFFIX = ".ftrace.zst"
LEVEL = 12
# Every lab has the same addresses, and a trace sees all namespaces: only the port tells labs apart.
PORT_BASE = 10_000

_EVENT = re.compile(
    rb"^.*? (\d+)\.(\d{6}): (tcp_probe|tcp_cong_state_set|tcp_retransmit_skb): (.*)$", re.MULTILINE
)
_LOST = re.compile(rb"\[LOST (\d+) EVENTS\]")
_KIND = {b"tcp_probe": 0, b"tcp_cong_state_set": 1, b"tcp_retransmit_skb": 2}


def port(slot: int) -> int:
    """Destination port of a lab that is recorded by ftrace.

    Raises
    ------
    UserError
        The slot has none.
    """
    if not 0 <= slot < 65536 - PORT_BASE:
        raise UserError(f"--slot {slot}: with ftrace a slot is from 0 to {65535 - PORT_BASE}")
    return PORT_BASE + slot


def _fields(text: bytes) -> dict[bytes, bytes]:
    return dict(word.split(b"=", 1) for word in text.split() if b"=" in word)


def _ends(kind: int, fields: dict[bytes, bytes]) -> tuple[bytes, int, bytes, int]:
    if kind == 0:
        local, sport = fields[b"src"].rsplit(b":", 1)
        remote, dport = fields[b"dest"].rsplit(b":", 1)
        return local, int(sport), remote, int(dport)
    addresses = fields[b"saddr"], fields[b"daddr"]
    return addresses[0], int(fields[b"sport"]), addresses[1], int(fields[b"dport"])


def read(
    path: Path, dport: int, first: str, subflows: int = 2
) -> tuple[compact.Events, dict[str, Any], bytes]:
    """Read what `ftrace_probe` recorded of one lab.

    Parameters
    ----------
    path : Path
        Text of the trace.
    dport : int
        Destination port of the lab's connection.
    first : str
        Interface of the first subflow, wifi or lte.
    subflows : int
        2, or 1 of plain TCP.

    Returns
    -------
    Events
        As `compact.read_probe` has them, but ``rtt_us`` is the smoothed RTT, and ``old`` is
        what the subflow's previous change said.
    dict
        ``token`` (None), ``subflows``, ``lost_events`` and ``counted`` (empty: a trace has no
        counters).
    bytes
        The lab's own lines in order of time.

    Raises
    ------
    UserError
        Not exactly one connection with its subflows.
    """
    raw = path.read_bytes()
    order = [first, "lte" if first == "wifi" else "wifi"][:subflows]
    number_of = {topology.ADDRESS[name].encode(): n for n, name in enumerate(order, start=1)}
    server = topology.ADDRESS["srv"].encode()
    rows: list[tuple[int, int, int, int, int, int, int]] = []
    lines: list[bytes] = []
    sports: dict[int, set[int]] = {n: set() for n in number_of.values()}
    for match in _EVENT.finditer(raw):
        kind, fields = _KIND[match[3]], _fields(match[4])
        local, sport, remote, remote_port = _ends(kind, fields)
        number = number_of.get(local)
        if number is None or remote != server or remote_port != dport:
            continue
        sports[number].add(sport)
        time_us = int(match[1]) * 1_000_000 + int(match[2])
        una = int(fields.get(b"snd_una", b"0"), 16)
        cwnd, srtt, new = (
            int(fields.get(name, b"0")) for name in (b"snd_cwnd", b"srtt", b"cong_state")
        )
        rows.append((time_us, kind, number, una, cwnd, srtt, new))
        lines.append(match[0])
    if any(len(found) != 1 for found in sports.values()):
        counts = ", ".join(f"{len(found)} from {order[n - 1]}" for n, found in sports.items())
        raise UserError(f"{path}: expected one subflow of each interface, found {counts}")
    by_time = sorted(range(len(rows)), key=lambda i: rows[i][0])
    return (
        _events(np.array([rows[i] for i in by_time], np.int64)),
        {
            "token": None,
            "subflows": {
                str(n): {"sport": sport, "dport": dport} for n, (sport,) in sports.items()
            },
            "lost_events": sum(int(match[1]) for match in _LOST.finditer(raw)),
            "counted": {},
        },
        b"\n".join(lines[i] for i in by_time) + b"\n",
    )


def _events(table: compact.Ints) -> compact.Events:
    time_us, kind, subflow, una, cwnd, srtt, new = table.T
    ack, old = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.int64)
    for number in (1, 2):
        acks = np.flatnonzero((subflow == number) & (kind == 0))
        if len(acks):
            ack[acks] = compact.unwrap(una[acks], int(una[acks[0]]))
        states = np.flatnonzero((subflow == number) & (kind == 1))
        old[states[1:]] = new[states[:-1]]
    t0_us = int(time_us[0])
    return compact.Events(t0_us, time_us - t0_us, kind, subflow, ack, srtt, cwnd, srtt, old, new)


def write(path: Path, lines: bytes, meta: dict[str, Any]) -> int:
    """Write a `.ftrace.zst` under a temporary name, then rename; returns its size in bytes.

    `meta` stands in a first line that begins with ``#``; `cczoo ingest` passes over it.
    """
    header = f"# cczoo-ftrace {json.dumps(meta, separators=(',', ':'))}\n".encode()
    packed = zstd.compress(header + lines, LEVEL)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(packed)
    os.replace(temporary, path)
    return len(packed)
