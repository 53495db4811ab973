"""Check what the kernel lab needs of a machine, and give a command for what is missing."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from data.lab import build, coupled, ftrace_probe, probes, tools
from data.lab.traffic import IPPROTO_MPTCP

PROBED_EVENTS = ("tcp_probe", "tcp_cong_state_set", "tcp_retransmit_skb")
BOOT = "boot a kernel built with {}"


@dataclass(frozen=True)
class Check:
    """One requirement. Without one that is not `needed`, the lab works with less."""

    name: str
    found: bool
    mend: str
    needed: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Plain form for JSON."""
        return asdict(self)


def _mptcp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        return False
    return Path("/proc/sys/net/mptcp/enabled").read_text().strip() == "1"


def _tun() -> bool:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError:
        return False
    return True


def _realtime() -> bool:
    # In a child: this process keeps its own scheduling.
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, check=False
    )
    return done.returncode == 0


def _tracepoints() -> bool:
    """Whether the kernel's BTF knows the three tracepoints (tp_btf attaches by them)."""
    try:
        types = build.BTF.read_bytes()
    except OSError:
        return False
    return all(f"btf_trace_{event}\0".encode() in types for event in PROBED_EVENTS)


def _offers(cc: str) -> Callable[[], bool]:
    return lambda: cc in coupled.AVAILABLE.read_text(encoding="ascii").split()


def _has(command: str) -> Callable[[], bool]:
    return lambda: shutil.which(command) is not None


def _namespaces() -> bool:
    try:
        fd = os.open("/proc/self/ns/net", os.O_RDONLY)
    except OSError as error:
        return error.errno != errno.ENOENT
    os.close(fd)
    return True


def examine() -> list[Check]:
    """Check every requirement of the lab.

    Returns
    -------
    list of Check
        In the order in which one would mend them. What only BPF needs is not `needed` if ftrace
        can stand in: it costs the raw RTT and LIA.
    """
    no_ftrace = ftrace_probe.why_not()
    bpf_needed = no_ftrace is not None
    checks: list[tuple[str, Callable[[], bool], str, bool]] = [
        ("root", lambda: os.geteuid() == 0, "run it with sudo", True),
        ("network namespaces", _namespaces, BOOT.format("CONFIG_NET_NS=y"), True),
        ("MPTCP", _mptcp, "sysctl -w net.mptcp.enabled=1 (kernel with CONFIG_MPTCP=y)", True),
        ("TUN devices", _tun, "modprobe tun (kernel with CONFIG_TUN)", True),
        ("BTF", build.BTF.exists, BOOT.format("CONFIG_DEBUG_INFO_BTF=y"), bpf_needed),
        (
            "tracepoints tcp_probe, tcp_cong_state_set, tcp_retransmit_skb",
            _tracepoints,
            BOOT.format("CONFIG_TRACEPOINTS=y, Linux 5.16 or later"),
            bpf_needed,
        ),
        ("SCHED_FIFO", _realtime, "sysctl -w kernel.sched_rt_runtime_us=950000", True),
    ]
    for cc in ("reno", "cubic", "bbr"):
        mend = f"modprobe tcp_{cc} (kernel with CONFIG_TCP_CONG_{cc.upper()})"
        checks.append((f"congestion control {cc}", _offers(cc), mend, cc == "reno"))
    for command, package in (("ip", "iproute2"), ("setpriv", "util-linux"), ("sysctl", "procps")):
        checks.append((command, _has(command), tools.advice(package), True))
    missing = build.missing_requirements()
    for what, package in build.REQUIREMENTS.items():
        mend = tools.advice(package)
        needed = what in build.PLAIN_C or bpf_needed
        checks.append((what, lambda what=what: what not in missing, mend, needed))  # type: ignore[misc]
    mend = "run as root outside a restricted container"
    checks.append(("BPF allowed", probes.bpf_allowed, mend, bpf_needed))
    checks.append(
        (
            "ftrace, the fallback probe where BPF is missing (no raw RTT, no LIA)",
            lambda: no_ftrace is None,
            no_ftrace or "",
            False,
        )
    )
    for cc, name in coupled.COUPLED.items():
        mend = f"cczoo lab run SCENARIO --out /tmp/lab, SCENARIO with cc: {cc}"
        title = f"{cc} registered (done by the first run that asks for it)"
        checks.append((title, partial(coupled.registered, name), mend, False))
    return [Check(name, _holds(test), mend, needed) for name, test, mend, needed in checks]


def _holds(test: Callable[[], bool]) -> bool:
    """Whether a requirement is met; one that this user may not even look at isn't."""
    try:
        return bool(test())
    except OSError:
        return False
