"""Registration of the coupled LIA congestion control, once per machine, shared by all labs."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from data.errors import UserError

NAME = "bpf_lia"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
LOCK = Path("/run/lock/cczoo-lia")


def registered() -> bool:
    """Whether the kernel offers LIA."""
    return NAME in AVAILABLE.read_text(encoding="ascii").split()


def ensure(program: Path) -> None:
    """Register LIA from its compiled BPF object unless the kernel already has it.

    Raises
    ------
    UserError
        The kernel refused it.
    """
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if registered():
            return
        done = subprocess.run(
            ["bpftool", "struct_ops", "register", str(program)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not registered():
            reason = " ".join((done.stderr or done.stdout).split())[-300:]
            raise UserError(f"cannot register {NAME}: {reason}; try: cczoo lab doctor")


def unregister() -> bool:
    """Take LIA out of the kernel; whether it was there and is gone now."""
    if not registered():
        return False
    subprocess.run(
        ["bpftool", "struct_ops", "unregister", "name", NAME], capture_output=True, check=False
    )
    return not registered()
