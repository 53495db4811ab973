"""Two namespaces, a klink between them, and what the tests of the native programs share."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from data.errors import UserError
from data.lab.build import build

CLONE_NEWNET = 0x40000000
IPPROTO_MPTCP = 262
SERVER = "10.0.9.1"
PATIENCE_S = 120
"""For what takes a moment: only what hangs takes as long on any machine."""


def why_not() -> str | None:
    if os.geteuid():
        return "needs root (network namespaces)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    if not shutil.which("ip") or not shutil.which("ping"):
        return "needs iproute2 and iputils-ping: apt-get install -y iproute2 iputils-ping"
    try:
        build()
    except UserError as error:
        return str(error)
    return None


def why_no_mptcp() -> str | None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        return f"needs MPTCP in the kernel, switched on: {error}; see cczoo lab doctor"
    return None


def shell(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def inside(netns: str) -> Iterator[None]:
    """Sockets made in here belong to the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{netns}") as there:
        assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), CLONE_NEWNET) == 0


@dataclass
class Lab:
    """Client with two interfaces, server with one, and the klink between them."""

    folder: Path
    client: str
    server: str
    klink: subprocess.Popen[str]
    log: list[list[str]] = field(default_factory=list)
    t0_ns: int = 0
    stats: dict[str, object] = field(default_factory=dict)

    def address(self, server_addresses: list[str], route_options: tuple[str, ...] = ()) -> None:
        for table, device in (("1", "wifi"), ("2", "lte")):
            own = f"10.0.{table}.1"
            shell("ip", "-n", self.client, "addr", "add", f"{own}/32", "dev", device)
            shell("ip", "-n", self.client, "rule", "add", "from", own, "table", table)
            route = ["default", "dev", device, "src", own, *route_options]
            shell("ip", "-n", self.client, "route", "add", *route, "table", table)
        shell("ip", "-n", self.client, "route", "add", "default", "dev", "wifi", *route_options)
        for own in server_addresses:
            shell("ip", "-n", self.server, "addr", "add", f"{own}/32", "dev", "srv")
        shell("ip", "-n", self.server, "route", "add", "default", "dev", "srv")

    def sysctl(self, *settings: str) -> None:
        for netns in (self.client, self.server):
            shell("ip", "netns", "exec", netns, "sysctl", "-qw", *settings)

    def finish(self) -> None:
        """Ends klink and reads what it wrote."""
        self.klink.send_signal(signal.SIGTERM)
        _, errors = self.klink.communicate(timeout=PATIENCE_S)
        assert self.klink.returncode == 0, errors
        first, *rest = (self.folder / "log").read_text().splitlines()
        self.t0_ns = int(first.removeprefix("#t0_mono_ns="))
        self.log = [line.split(",") for line in rest]
        self.stats = json.loads((self.folder / "stats").read_text())


def start_klink(folder: Path, programs: dict[str, Path], config: str) -> subprocess.Popen[str]:
    (folder / "config").write_text(config)
    command = [str(programs["klink"]), str(folder / "config"), "--fifo", "50"]
    command += ["--log", str(folder / "log"), "--stats", str(folder / "stats")]
    klink = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    assert klink.stdout is not None
    line = klink.stdout.readline()
    if line != "ready\n":
        raise AssertionError(klink.communicate(timeout=PATIENCE_S)[1])
    return klink


MakeLab = Callable[[str], Lab]
