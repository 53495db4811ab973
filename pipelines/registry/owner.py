"""The lease of a process that writes to the registry, and whether its holder is still there."""

from __future__ import annotations

import getpass
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path


def who() -> str:
    """``user@host``; the user is the MLflow server's if one is set."""
    try:
        user = os.environ.get("MLFLOW_TRACKING_USERNAME") or getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lease() -> str:
    """Lease of this process, ``host/pid/start/time``, to be left with work that it has begun."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{int(time.time())}"


def is_gone(lease: str, patience_s: float) -> bool:
    """Whether a lease is void: the process that holds it has ended, and nobody will go on.

    Parameters
    ----------
    lease : str
        As made by :func:`lease`.
    patience_s : float
        Age in seconds at which the lease of another host's process becomes void; a process of this
        host is looked up instead.
    """
    host, pid, started, time_s = [*lease.split("/"), "", "", ""][:4]
    if not (pid.isdigit() and time_s.isdigit()):
        return True
    if host == socket.gethostname():
        return _started(int(pid)) != started
    return time.time() - int(time_s) > patience_s


def _started(pid: int) -> str:
    """The kernel's start time of a process (its pid may come again); empty if there is none."""
    try:
        # The name in parentheses may hold spaces; field 22 is the 20th after it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
