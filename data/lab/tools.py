"""Install what the kernel lab, the eBPF target and their tests need of the system: `make tools`.

Run as ``python -m data.lab.tools``, with the standard library alone: it comes before `make setup`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from data.lab import ftrace_probe

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"
PACKAGES = {
    "gcc": "C code of exported models, the lab's link emulator",
    "make": "the lab's native programs",
    "clang-14": "eBPF programs",
    "llvm-14": "their object code, read and stripped",
    "libclang-rt-14-dev": "fuzzing and sanitizers with clang",
    "libbpf-dev": "the BPF probe and the eBPF target",
    "libelf-dev": "the BPF probe",
    "zlib1g-dev": "the BPF probe",
    "bpftool": "loading and listing of BPF programs",
    "iproute2": "network namespaces of the lab",
    "iputils-ping": "tests of the link emulator",
    "iperf3": "traffic to compare the lab's own with",
    "procps": "sysctl",
    "linux-headers-{arch}": "the example kernel module of docs/deploy.md",
    "bubblewrap": "the sandbox of `cczoo verify --run-foreign`",
    "openssh-client": "signatures of bundles",
}
"""Debian's name -> what needs it."""

_APT = ("apt-get", "-o", "DPkg::Lock::Timeout=60", "-o", "Acquire::Retries=1",
        "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")  # fmt: skip
_LIMIT_S = 900


def advice(package: str) -> str:
    """The line that installs a package: ``make tools`` in a checkout, else apt's.

    Parameters
    ----------
    package : str
        Debian's name.
    """
    apt = f"apt-get install -y {package}"
    return f"make tools (or {apt})" if MAKEFILE.is_file() and package in PACKAGES else apt


def missing() -> list[str]:
    """Debian packages of :data:`PACKAGES` that this machine lacks; one call, no network.

    Raises
    ------
    OSError
        dpkg isn't there: no Debian.
    """
    arch = _output_of(["dpkg", "--print-architecture"]).strip()
    wanted = [name.format(arch=arch) for name in PACKAGES]
    known = _output_of(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted])
    return [name for name in wanted if f"{name} installed" not in known.splitlines()]


def install(names: list[str]) -> str | None:
    """Install packages without asking; returns what went wrong, or None.

    A name that the mirror doesn't know is left out, so that it doesn't cost the others.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
    problems = []
    if failed := _apt(["update", "-q"], environment):
        problems.append(failed)
    unknown = [name for name in names if not _output_of(["apt-cache", "show", name])]
    if unknown:
        problems.append(f"not known to apt here: {' '.join(unknown)}")
    if known := [name for name in names if name not in unknown]:
        command = ["install", "-y", "-q", "--no-install-recommends", *known]
        if failed := _apt(command, environment):
            problems.append(failed)
    return "; ".join(problems) or None


def main() -> int:
    """Install and mount what is missing, and print what came of it; returns 0 in any case."""
    try:
        names = missing()
    except OSError:
        print(f"tools: no dpkg here; by Debian's names it takes: {' '.join(PACKAGES)}")
        return 0
    line = f"apt-get install -y --no-install-recommends {' '.join(names)}"
    root = os.geteuid() == 0
    if names and not root:
        print(f"tools: not root, so nothing is installed; run: sudo {line}")
    elif names:
        print(f"tools: installing {' '.join(names)}", flush=True)
        problem = install(names)
        if left := missing():
            print(f"tools: still missing: {' '.join(left)} ({problem}); run: {line}")
    if root and ftrace_probe.root() is None:
        _mount()
    return 0


def _mount() -> None:
    """Mount tracefs, which containers often lack; nothing of its settings changes."""
    command = ["mount", "-t", "tracefs", "nodev", str(ftrace_probe.PLACES[0])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        message = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        message = str(error)
    print(f"tools: tracefs can't be mounted: {message}" if message else "tools: tracefs mounted")


def _apt(command: list[str], environment: dict[str, str]) -> str | None:
    try:
        done = subprocess.run([*_APT, *command], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=_LIMIT_S, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"apt-get {command[0]}: {error}"
    if not done.returncode:
        return None
    errors = [row for row in done.stderr.splitlines() if row.startswith("E:")]
    last = (errors or [f"status {done.returncode}"])[-1]
    return f"apt-get {command[0]}: {last}"


def _output_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main())
