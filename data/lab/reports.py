"""The words that the proxy and a decision engine exchange; the structs of ``native/proxy.h``.

Both begin with a `HELLO`. After every interval the proxy sends a `HEADER` and a `REPORT` of each
flow; the engine answers with the same `HEADER`, its count changed, and a `WINDOW` of each flow
that it decides for.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = 0x31505A43
FREE, START, DRIVEN, ALONE = range(4)
"""Phases of a flow: nobody's place, slow start, following its target, CUBIC's without orders."""
HELLO = np.dtype([("magic", "<u4"), ("interval_us", "<u4"), ("schema", "u1", 32)])
HEADER = np.dtype(
    [("magic", "<u4"), ("count", "<u4"), ("sequence", "<u8"), ("collected_ns", "<u8")]
)
REPORT = np.dtype(
    [(name, "<u4") for name in ("slot", "generation", "token", "sfid", "phase", "ca_state", "mss",
                                "cwnd", "target", "unit", "most", "in_flight")]
    + [(name, "<u8") for name in ("inode", "delivered_bytes", "rtt_sum_us")]
    + [(name, "<u4") for name in ("rtt_count", "rtt_least_us")]
)  # fmt: skip
WINDOW = np.dtype([(name, "<u4") for name in ("slot", "generation", "target", "pad")])

Records = NDArray[Any]


def receive(sock: socket.socket, kind: np.dtype[Any], count: int = 1) -> Records | None:
    """Take records from a stream; None if the other side is gone."""
    wanted = count * kind.itemsize
    got = bytearray()
    while len(got) < wanted:
        part = sock.recv(wanted - len(got))
        if not part:
            return None
        got += part
    return np.frombuffer(bytes(got), kind, count)


def hello(schema: str, interval_us: int) -> bytes:
    """First words of either side."""
    record = np.zeros(1, HELLO)
    record["magic"], record["interval_us"] = MAGIC, interval_us
    record["schema"] = np.frombuffer(bytes.fromhex(schema), np.uint8)
    return record.tobytes()


def answer(header: Records, windows: Records) -> bytes:
    """The engine's answer to a header that it received."""
    reply = header.copy()
    reply["count"] = len(windows)
    return reply.tobytes() + windows.tobytes()
