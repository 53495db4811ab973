"""Record one lab's TCP events through a trace instance of its own: the probe without BPF.

It runs as a script (standard library only, as traffic.py): it makes the instance, prints ``ready``,
copies the kernel's text until SIGTERM or SIGINT, and removes the instance. Nothing of the machine's
own tracing changes. The filter is the destination port, so one lab needs a port of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

EVENTS = ("tcp_probe", "tcp_cong_state_set", "tcp_retransmit_skb")
PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
PREFIX = "cczoo_cz"
# Per CPU: some ten thousand events, seconds of a connection, should the reader be kept waiting.
BUFFER_KB = 2048
LOOK_EVERY_S = 0.02


def root() -> Path | None:
    """Where tracefs is mounted with instances; None if it isn't, or is hidden from this user."""
    # Not Path.is_dir: that raises PermissionError in a folder that is root's alone.
    return next((place for place in PLACES if os.path.isdir(place / "instances")), None)


def why_not() -> str | None:
    """Why this probe can't work here, with what to do about it; None if it can."""
    place = root()
    if place is None and os.geteuid():
        return "only root may look into tracefs; run it with sudo"
    if place is None:
        return "tracefs not mounted; run: mount -t tracefs nodev /sys/kernel/tracing"
    missing = [event for event in EVENTS if not (place / "events/tcp" / event).is_dir()]
    if missing:
        return f"no tracepoint {missing[0]}; boot a kernel built with CONFIG_EVENT_TRACING=y"
    return None


def name_of(slot: int) -> str:
    """Name of a lab's instance."""
    return f"{PREFIX}{slot}"


def instances(slot: int | None = None) -> list[str]:
    """Names of the labs' instances on this machine, of one slot or all."""
    place = root()
    if place is None:
        return []
    found = [path.name for path in (place / "instances").glob(f"{PREFIX}*")]
    return sorted(name for name in found if slot is None or name == name_of(slot))


def remove(name: str, wait_s: float = 2.0) -> bool:
    """Switch an instance off and delete it; False if somebody still reads it.

    Parameters
    ----------
    name : str
        As `name_of` gives it.
    wait_s : float
        How long to wait for a reader to let go.
    """
    place = root()
    if place is None or not (folder := place / "instances" / name).is_dir():
        return True
    with contextlib.suppress(OSError):
        (folder / "events/enable").write_text("0")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            folder.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)


def create(name: str, port: int) -> Path:
    """Make an instance that records the events of senders to `port`; its folder.

    What a killed run left of the same name goes first.
    """
    place = root()
    if place is None:
        raise OSError(why_not())
    if not remove(name):
        raise OSError(f"trace instance {name} is read by another process; run: cczoo lab clean")
    folder = place / "instances" / name
    folder.mkdir()
    (folder / "trace_clock").write_text("mono")
    (folder / "buffer_size_kb").write_text(str(BUFFER_KB))
    for event in EVENTS:
        (folder / "events/tcp" / event / "filter").write_text(f"dport == {port}")
        (folder / "events/tcp" / event / "enable").write_text("1")
    return folder


def _drain(pipe: int, out: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while text := os.read(pipe, 1 << 16):
            os.write(out, text)


def record(folder: Path, out: Path, stopping: list[int]) -> None:
    """Copy an instance's text to `out` until `stopping` holds a signal, then give it its name."""
    part = out.with_name(f"{out.name}.part")
    pipe = os.open(folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        print("ready", flush=True)
        while not stopping:
            _drain(pipe, file)
            time.sleep(LOOK_EVERY_S)
        (folder / "events/enable").write_text("0")
        _drain(pipe, file)
    finally:
        os.close(pipe)
        os.close(file)
    part.replace(out)


def main() -> int:
    """Record as the arguments say."""
    parser = argparse.ArgumentParser(prog="ftrace_probe")
    parser.add_argument("--instance", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopping.append(received))
    try:
        folder = create(arguments.instance, arguments.port)
        record(folder, arguments.out, stopping)
    except OSError as error:
        print(f"ftrace_probe: {error}", file=sys.stderr)
        return 1
    finally:
        remove(arguments.instance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
