"""Remove what a killed run left behind; doing it twice does no harm."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from data.lab import coupled, ftrace_probe

NAMESPACE = re.compile(r"cz(\d+)[a-z]")
RUN_DIR = Path("/run/netns")
WAIT_S = 2.0


def work_folder(slot: int) -> Path:
    """Temporary folder of a lab's run."""
    return Path(tempfile.gettempdir()) / "cczoo-lab" / f"cz{slot}"


def namespaces(slot: int | None = None) -> list[str]:
    """Names of the labs' namespaces on this machine, of one slot or all."""
    if not RUN_DIR.is_dir():
        return []
    found = []
    for path in sorted(RUN_DIR.iterdir()):
        match = NAMESPACE.fullmatch(path.name)
        if match and (slot is None or int(match[1]) == slot):
            found.append(path.name)
    return found


def _processes(names: list[str]) -> list[int]:
    """Processes inside the namespaces, and the emulators and probes started for them."""
    inodes = {os.stat(RUN_DIR / name).st_ino for name in names if (RUN_DIR / name).exists()}
    slots = {re.sub("[a-z]$", "", name) for name in names}
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            inside = os.stat(entry / "ns/net").st_ino in inodes
            # klink and probe live in the first namespace; their files are named after the slot.
            ours = any(f"cczoo-lab/{slot}/" in word for word in command for slot in slots)
            if inside or ours:
                pids.append(int(entry.name))
    return pids


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _end(pids: list[int]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline and any(_alive(pid) for pid in pids):
            time.sleep(0.05)


def clean(slot: int | None = None) -> dict[str, list[str]]:
    """Remove labs' namespaces, processes, files and trace instances; their BPF if none is left.

    Nothing else of the machine was changed by the lab: congestion control is set per socket, other
    settings inside namespaces.

    Parameters
    ----------
    slot : int, optional
        Only this lab; all labs by default, those of a running collection included.

    Returns
    -------
    dict
        What was removed: ``processes``, ``namespaces``, ``folders``, ``trace instances``,
        ``congestion controls``; kinds of which nothing was there are left out.
    """
    names = namespaces(slot)
    pids = _processes(names)
    _end(pids)
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    # A recorder that was ended above has removed its own.
    traces = [name for name in ftrace_probe.instances(slot) if ftrace_probe.remove(name)]
    if slot is None:
        parent = work_folder(0).parent
        folders = sorted(parent.iterdir()) if parent.is_dir() else []
    else:
        folders = [path for path in [work_folder(slot)] if path.exists()]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    removed = {
        "processes": [str(pid) for pid in pids],
        "namespaces": names,
        "folders": [str(folder) for folder in folders],
        "trace instances": traces,
    }
    if not namespaces():
        controls = (*coupled.COUPLED.values(), coupled.LIVE, coupled.EXPORTED)
        removed["congestion controls"] = [name for name in controls if coupled.unregister(name)]
    return {kind: found for kind, found in removed.items() if found}
