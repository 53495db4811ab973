"""Who writes to the registry, and whether a writer that left something behind is still there."""

from __future__ import annotations

import getpass
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path


def who() -> str:
    """``user@host``; the user is the MLflow server's where one is set."""
    try:
        user = os.environ.get("MLFLOW_TRACKING_USERNAME") or getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def now() -> str:
    """UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def mark() -> str:
    """Name of the process, ``host/pid/start/time``, to be left where work has begun."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{int(time.time())}"


def is_gone(mark: str, patience_s: float) -> bool:
    """Whether the process that left a mark will not come back to it.

    Parameters
    ----------
    mark : str
        Of :func:`mark`.
    patience_s : float
        After so long a process of another host counts as gone; one of this host is looked up.
    """
    host, pid, started, time_s = [*mark.split("/"), "", "", ""][:4]
    if not (pid.isdigit() and time_s.isdigit()):
        return True
    if host == socket.gethostname():
        return _started(int(pid)) != started
    return time.time() - int(time_s) > patience_s


def _started(pid: int) -> str:
    """The kernel's start time of a process (a pid alone may come again), empty without one."""
    try:
        # The name in parentheses may hold spaces; field 22 is the 20th after it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
