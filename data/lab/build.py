"""Compile the lab's native programs if they are missing or older than their sources."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from data.errors import UserError

NATIVE = Path(__file__).resolve().parent / "native"
BUILD = NATIVE / "build"
BTF = Path("/sys/kernel/btf/vmlinux")

# What each program is built into; the Makefile has the same names.
TARGETS = {
    "klink": BUILD / "klink",
    "probe": BUILD / "probe",
    "lia": BUILD / "lia.bpf.o",
    "mpcdg": BUILD / "mpcdg.bpf.o",
    "proxy": BUILD / "proxy",
}

# Command or header, and the Debian package that has it.
REQUIREMENTS = {
    "cc": "gcc",
    "make": "make",
    "clang-14": "clang-14",
    "bpftool": "bpftool",
    "/usr/include/bpf/bpf_helpers.h": "libbpf-dev",
    "/usr/include/libelf.h": "libelf-dev",
    "/usr/include/zlib.h": "zlib1g-dev",
    "/usr/include/linux/types.h": "linux-libc-dev",
}

# All that the link emulator needs.
PLAIN_C = ("cc", "make", "/usr/include/linux/types.h")


def missing_requirements(targets: Iterable[str] = tuple(TARGETS)) -> dict[str, str]:
    """What compiling needs and this machine lacks.

    Parameters
    ----------
    targets : iterable of str
        Programs to compile, all by default; the link emulator alone needs no BPF.

    Returns
    -------
    dict of str to str
        Command or header file, to the Debian package that has it; empty when all is there.
    """
    return {
        what: package
        for what, package in REQUIREMENTS.items()
        if (what in PLAIN_C or set(targets) != {"klink"})
        and not (Path(what).exists() if what.startswith("/") else shutil.which(what))
    }


def stale(targets: Iterable[str] = tuple(TARGETS)) -> bool:
    """Whether a program is missing or older than the sources."""
    sources = [path for path in NATIVE.iterdir() if path.is_file() and path.name != "README.md"]
    newest_source = max(path.stat().st_mtime for path in sources)
    return any(
        not TARGETS[name].exists() or TARGETS[name].stat().st_mtime < newest_source
        for name in targets
    )


def _check_requirements(targets: Iterable[str]) -> None:
    missing = missing_requirements(targets)
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise UserError(
            f"cannot compile the lab's programs: {', '.join(missing)} not found; "
            f"run: apt-get install -y {packages}"
        )
    if set(targets) != {"klink"} and not BTF.exists():
        raise UserError(
            f"cannot compile the lab's programs: {BTF} not found; "
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y"
        )


def build(targets: Iterable[str] = tuple(TARGETS), force: bool = False) -> dict[str, Path]:
    """Compile what is missing or older than its sources.

    Callers at the same time wait for one another (a lock file), and only the first compiles.

    Parameters
    ----------
    targets : iterable of str
        What is needed of `TARGETS`; all by default.
    force : bool
        Compile it even if it is up to date.

    Returns
    -------
    dict of str to pathlib.Path
        `TARGETS`, of which those asked for are there: programs, and BPF objects of congestion
        controls.

    Raises
    ------
    UserError
        If a compiler or header is missing (with the command that installs it), the kernel has no
        BTF, or a source doesn't compile.
    """
    targets = tuple(targets)
    if not force and not stale(targets):
        return dict(TARGETS)
    _check_requirements(targets)
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if force or stale(targets):
            command = ["make", "-C", str(NATIVE)] + [f"build/{TARGETS[t].name}" for t in targets]
            command += ["--always-make"] if force else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
                raise UserError(
                    f"compiling the lab's programs failed: {(errors or ['?'])[0].strip()}; "
                    f"run: make -C {NATIVE}"
                )
            # A target that make found up to date may still be older than another's source.
            for name in targets:
                TARGETS[name].touch()
    return dict(TARGETS)
