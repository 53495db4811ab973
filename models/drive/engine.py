"""The decision engine (tcco.txt section III.A): a process that answers proxies' reports.

It listens on a Unix socket, or on a TCP port for proxies on other machines, and serves one proxy
after the other. It computes in one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.lab.reports import DRIVEN, HEADER, HELLO, MAGIC, REPORT, Records, answer, hello, receive
from features.tcco import TccoObservation
from models.drive.deciding import Deciding
from models.drive.driving import Driving
from models.drive.policies import driving

MOST_INTERVALS = 50
"""At most so many are made up for: by then the flows have long been CUBIC's."""


def serve(driving: Driving, where: str, log: Path | None = None) -> None:
    """Answer proxies for ever.

    Parameters
    ----------
    driving : Driving
        What decides, and what it observes.
    where : str
        Path of a Unix socket, or ``HOST:PORT``.
    log : Path, optional
        Where a line of JSON goes for each decision.
    """
    with _listening(where) as listener, _lines(log) as note:
        _warm(driving)
        print("ready", flush=True)
        while True:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(ConnectionError):
                _converse(peer, driving, note)


def _warm(driving: Driving) -> None:
    """Decide for two subflows of nobody's: from then on all is compiled and allocated."""
    reports = np.zeros(2, REPORT)
    reports["token"], reports["sfid"], reports["slot"] = 1, (1, 2), (0, 1)
    reports["phase"], reports["mss"], reports["most"], reports["target"] = DRIVEN, 1448, 100, 10
    reports["rtt_count"], reports["rtt_sum_us"] = 1, 10_000
    deciding = Deciding(driving.make(), driving.observation, driving.min_cwnd)
    for _ in range(3):
        deciding.decide(reports)


def _converse(peer: socket.socket, driving: Driving, note: Notes) -> None:
    if peer.family != socket.AF_UNIX:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    theirs = receive(peer, HELLO)
    if theirs is None or theirs["magic"][0] != MAGIC:
        return
    peer.sendall(hello(driving.schema, driving.observation.interval_us))
    if theirs["schema"].tobytes() != bytes.fromhex(driving.schema):
        print("a proxy reports something else than the policy observes", file=sys.stderr)
        return
    deciding = Deciding(driving.make(), driving.observation, driving.min_cwnd)
    before_ns = 0
    while (header := receive(peer, HEADER)) is not None:
        reports = receive(peer, REPORT, int(header["count"][0]))
        if reports is None:
            return
        begun_ns = time.monotonic_ns()
        collected_ns = int(header["collected_ns"][0])
        intervals = round((collected_ns - before_ns) / (1000 * driving.observation.interval_us))
        windows = deciding.decide(reports, min(MOST_INTERVALS, max(1, intervals)))
        before_ns = collected_ns
        peer.sendall(answer(header, windows))
        spent_ns = time.monotonic_ns() - begun_ns
        note(int(header["sequence"][0]), reports, windows, deciding, spent_ns)


class Notes:
    """Writes what was decided, a line of JSON each; nothing without a file."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("w", encoding="utf-8") if path else None

    def __call__(
        self, sequence: int, reports: Records, windows: Records, by: Deciding, ns: int
    ) -> None:
        """Note one answer."""
        if self._file is None:
            return
        names = REPORT.names or ()
        line = {
            "sequence": sequence,
            "ns": ns,
            "reports": [dict(zip(names, row, strict=True)) for row in reports.tolist()],
            "values": [by.values(int(report["slot"])) for report in reports],
            "windows": windows.tolist(),
        }
        self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Write what is not yet written."""
        if self._file is not None:
            self._file.close()


@contextlib.contextmanager
def _lines(path: Path | None) -> Iterator[Notes]:
    notes = Notes(path)
    try:
        yield notes
    finally:
        notes.close()


@contextlib.contextmanager
def _listening(where: str) -> Iterator[socket.socket]:
    host, colon, port = where.rpartition(":")
    if colon:
        listener = socket.create_server((host, int(port)))
    else:
        Path(where).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(where)
        listener.listen(1)
    with listener:
        yield listener


def main() -> int:
    """Run as ``python -m models.drive.engine``."""
    parser = argparse.ArgumentParser(description="decision engine of live connections")
    parser.add_argument("policy", help="a zoo entry, a bundle, a folder, or tracking:1.25")
    parser.add_argument("--listen", required=True, help="path of a Unix socket, or HOST:PORT")
    parser.add_argument("--log", type=Path, help="file for a line of JSON for each decision")
    parser.add_argument("--fifo", type=int, help="real-time priority")
    args = parser.parse_args()
    try:
        made = driving(args.policy, TccoObservation())
        if args.fifo:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(args.fifo))
        # Collecting garbage would delay decisions; nothing here makes cycles.
        gc.collect()
        gc.freeze()
        gc.disable()
        serve(made, args.listen, args.log)
    except UserError as error:
        print(f"engine: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
