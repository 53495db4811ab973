"""Two Ray nodes on this machine, and a look at the processes that a benchmark has started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

MARK = "CCZOO_BENCHMARK"
"""In the environment of everything that a run starts."""
START_S = 240


def processes(mark: str) -> Iterator[tuple[int, str, int]]:
    """Processes of a run: pid, title, peak resident memory in kB."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            title = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            status = (path / "status").read_text()
            parent = Path("/proc") / status.split("PPid:")[1].split()[0]
            # A Ray worker's title is written over its environment, so its parent is asked too.
            known = (path / "environ").read_bytes() + (parent / "environ").read_bytes()
            if mark.encode() in known:
                yield int(path.name), title, int(status.split("VmHWM:")[1].split()[0])


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """Two Ray nodes of one CPU each on this machine: environment to join them, the second node."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Ray's workers listen from 10002 to 19999.
    port = port if port > 20000 else port + 20000
    # A head asks for a token, which nodes and drivers only show when they are told to.
    mark = {
        MARK: uuid.uuid4().hex,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": uuid.uuid4().hex,
    }
    ray = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus", "1"]
    ray += ["--object-store-memory", str(150 * 1024**2)]
    head = ["--head", "--port", str(port), "--include-dashboard", "false"]
    head += ["--temp-dir", str(folder)]
    nodes = []
    try:
        for more in (head, ["--address", f"127.0.0.1:{port}"]):
            nodes.append(_node([*ray, *more], {**os.environ, **mark}))
            _wait(mark[MARK], len(nodes), port)
        yield {**mark, "RAY_ADDRESS": f"127.0.0.1:{port}"}, nodes[1]
    finally:
        for node in nodes:
            end(node)
        for pid, _, _ in processes(mark[MARK]):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _node(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _wait(mark: str, nodes: int, port: int) -> None:
    """Wait for so many raylets, and for the head to listen."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        there = sum("raylet/raylet" in title for _, title, _ in processes(mark))
        if there >= nodes:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
        time.sleep(0.5)
    raise SystemExit(f"{nodes} Ray nodes on port {port} aren't up within {START_S} s")


def end(node: subprocess.Popen[bytes]) -> None:
    """Kill a node and all that it started in its process group."""
    with contextlib.suppress(OSError):
        os.killpg(node.pid, signal.SIGKILL)
    node.wait()
