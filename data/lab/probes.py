"""The two ways to record a sender: BPF if the machine allows it, ftrace otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import build, compact, coupled, ftrace, ftrace_probe, topology
from data.lab.scenario import Scenario
from data.lab.topology import Lab

NAMES = ("bpf", "ftrace")
SUFFIX = {"bpf": ".klog.zst", "ftrace": ftrace.SUFFIX}
SCRIPT = Path(ftrace_probe.__file__)


def bpf_allowed() -> bool:
    """Whether bpftool is there and the kernel answers it."""
    try:
        done = subprocess.run(["bpftool", "prog", "list"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def why_no_bpf() -> str | None:
    """Why the BPF probe can't be used here; None if it can."""
    if not build.BTF.exists():
        return f"{build.BTF} not found"
    if not bpf_allowed():
        return "the kernel or a missing bpftool refuses BPF"
    missing = build.missing_requirements()
    if missing and build.stale():
        return f"{', '.join(missing)} not found"
    return None


def choose(wanted: str | None = None) -> str:
    """Name of the probe to use.

    Parameters
    ----------
    wanted : str, optional
        ``bpf`` or ``ftrace``; without it BPF, or ftrace if BPF is not available.

    Raises
    ------
    UserError
        The wanted one, or either, can't work here.
    """
    no_bpf = why_no_bpf() if wanted != "ftrace" else None
    no_ftrace = ftrace_probe.why_not()
    if wanted == "bpf" or (wanted is None and not no_bpf):
        if no_bpf:
            raise UserError(f"no BPF probe: {no_bpf}; run: cczoo lab doctor, or use --probe ftrace")
        return "bpf"
    if no_ftrace:
        also = f", and no BPF: {no_bpf}" if no_bpf else ""
        raise UserError(f"no ftrace probe: {no_ftrace}{also}")
    return "ftrace"


def prepare(probe: str, control: str) -> dict[str, Path]:
    """Compile what the probe and the congestion control need; paths of the programs.

    Parameters
    ----------
    probe : str
        As `choose` gave it.
    control : str
        Congestion control; the coupled ones only BPF can add to the kernel.

    Raises
    ------
    UserError
        Something can't be compiled or registered.
    """
    added = coupled.COUPLED.get(control)
    there = added is None or coupled.registered(added)
    if probe == "ftrace" and not there and (reason := why_no_bpf()):
        raise UserError(
            f"congestion control {control} needs BPF: {reason}; run: cczoo lab doctor, "
            "or set cc in the scenario to reno, cubic or bbr"
        )
    if probe == "ftrace" and there:
        return build.build(("klink",))
    tools = build.build()
    if added is not None:
        coupled.ensure(tools[control], added)
    return tools


def port(probe: str, slot: int) -> int:
    """Destination port of a lab's connection."""
    return ftrace.port(slot) if probe == "ftrace" else topology.PORT


def command(probe: str, tools: dict[str, Path], lab: Lab, out: Path) -> list[str]:
    """Command line of the probe; it prints ``ready`` and writes `out` after SIGTERM."""
    number = str(port(probe, lab.slot))
    if probe == "ftrace":
        script = [sys.executable, "-I", "-S", str(SCRIPT)]
        instance = ftrace_probe.name_of(lab.slot)
        return [*script, "--instance", instance, "--port", number, "--out", str(out)]
    netns = str(lab.inode("c"))
    return [str(tools["probe"]), "--netns", netns, "--port", number, "--sender", "--out", str(out)]


def read(
    probe: str, path: Path, slot: int, scenario: Scenario
) -> tuple[compact.Events, dict[str, Any], bytes]:
    """Events of one connection, what the probe says of it, and the text to keep (ftrace only)."""
    if probe == "ftrace":
        subflows = len(scenario.data_paths)
        return ftrace.read(path, port(probe, slot), scenario.first, subflows)
    mptcp = scenario.transport == "mptcp"
    return *compact.read_probe(path, topology.PORT, mptcp=mptcp), b""


def write(
    probe: str, folder: Path, name: str, events: compact.Events, text: bytes, meta: dict[str, Any]
) -> tuple[Path, int]:
    """Write the log of one connection; its path and size in bytes."""
    path = folder / f"{name}{SUFFIX[probe]}"
    if probe == "ftrace":
        return path, ftrace.write(path, text, meta)
    return path, compact.write(path, events, meta)


def log_name(record: dict[str, Any]) -> str:
    """Name of a record's log; records of before there were two probes are BPF's."""
    return f"{record['id']}{SUFFIX[record.get('probe', 'bpf')]}"
