"""An upload over a test's lab, moved by hand, and the proxy beside it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from native_lab import PATIENCE_S, SERVER, MakeLab, inside

from data.lab import decisions, follow
from data.lab.registered import bpftool, maps_of

LINK = """\
stage up rate_mbps=8 queue_packets=200 delay_ms=10
stage down delay_ms=10
path wifi srv stages=up
path srv wifi stages=down
"""
HELD = 8e6 * 0.02 / 8 / 1448
"""Segments that the path holds."""


class Upload:
    """A TCP connection over the lab's link, moved by hand."""

    def __init__(self, client: str, server: str, control: str) -> None:
        with inside(server):
            listener = socket.create_server((SERVER, 5000))
        with inside(client):
            self.sender = socket.socket()
            self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            self.sender.connect((SERVER, 5000))
        self.receiver = listener.accept()[0]
        listener.close()
        self.sender.setblocking(False)
        self.received = 0

    def go_on(self, duration_s: float) -> int:
        """Bytes that came through meanwhile."""
        before, data, end = self.received, bytes(1 << 16), time.monotonic() + duration_s
        while (left := end - time.monotonic()) > 0:
            readable, writable, _ = select.select(
                [self.receiver], [self.sender], [], min(left, 0.05)
            )
            if readable:
                self.received += len(self.receiver.recv(1 << 18))
            if writable:
                self.sender.send(data)
            time.sleep(0.002)
        return self.received - before

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


@contextlib.contextmanager
def proxy(control: follow.Control, out: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    command = follow.proxy(control, out, **options)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as one:
        try:
            yield one
        finally:
            one.kill()


def decided_inside(
    make_lab: MakeLab,
    folder: Path,
    settings: follow.Settings,
    policy: Path,
    name: str,
    last_s: float,
) -> dict[str, Any]:
    """A policy inside the control, and a proxy that only looks on.

    Returns
    -------
    dict
        ``bytes`` that came through after the first half second, the last state of the ``flow``
        and its ``tree``'s memory if it has one, and what the proxy noted as ``decisions``.
    """
    found: dict[str, Any] = {}
    lab = make_lab(LINK)
    lab.address([SERVER])
    lab.sysctl("net.ipv4.tcp_wmem=4096 4194304 8388608", "net.ipv4.tcp_rmem=4096 4194304 8388608")
    inode = os.stat(f"/run/netns/{lab.client}").st_ino
    with follow.loaded(settings, folder, name, policy) as control:
        with proxy(control, folder / "out", netns=inode) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            upload = Upload(lab.client, lab.server, name)
            upload.go_on(0.5)
            found["bytes"] = upload.go_on(last_s - 0.5)
            slot, found["flow"] = next(
                (slot, flow)
                for slot, flow in enumerate(values_of(control.maps["flows"]))
                if flow["taken"] and flow["inode"] == inode
            )
            memories = maps_of(control.programs["pkts_acked"]).get("tree_memories")
            found["tree"] = memories and values_of(memories)[slot]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        upload.close()
        time.sleep(0.3)
    found["decisions"] = decisions.summed_up(folder / "out")
    lab.finish()
    return found


def values_of(number: int) -> list[dict[str, Any]]:
    """All values of a map of the kernel's, by its id."""
    return [one["formatted"]["value"] for one in bpftool("map", "dump", "id", str(number))]
