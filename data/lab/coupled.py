"""Registration of congestion controls in BPF: coupled ones, and a model's while it runs live."""

from __future__ import annotations

import fcntl
import json
import subprocess
from pathlib import Path

from data.errors import UserError

NAME = "bpf_lia"
COUPLED = {"lia": NAME, "mpcdg": "bpf_mpcdg"}
"""Control -> its name in the kernel, of those that the lab brings along."""
LIVE = "cczoo_live"
EXPORTED = "cczoo_sbd"
"""Congestion control in an exported model's bundle, which its proof loads; see `unregister`."""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
LOCK = Path("/run/lock/cczoo-lia")


def registered(name: str = NAME) -> bool:
    """Whether the kernel offers LIA, or another congestion control."""
    return name in AVAILABLE.read_text(encoding="ascii").split()


def ensure(program: Path, name: str = NAME) -> None:
    """Register LIA, or another one, from its compiled BPF object unless the kernel has it.

    Raises
    ------
    UserError
        The kernel refused it.
    """
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if registered(name):
            return
        done = subprocess.run(
            ["bpftool", "struct_ops", "register", str(program)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not registered(name):
            reason = " ".join((done.stderr or done.stdout).split())[-300:]
            raise UserError(f"cannot register {name}: {reason}; try: cczoo lab doctor")


def unregister(name: str = NAME) -> bool:
    """Take LIA, or another one, out of the kernel; whether it was there and is gone now."""
    if not registered(name):
        return False
    done = subprocess.run(
        ["bpftool", "-j", "struct_ops", "show"], capture_output=True, text=True, check=False
    )
    for one in json.loads(done.stdout or "[]"):
        if one["name"] == name:
            command = ["bpftool", "struct_ops", "unregister", "id", str(one["id"])]
            subprocess.run(command, capture_output=True, check=False)
    return not registered(name)
