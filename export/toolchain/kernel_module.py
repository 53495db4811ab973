"""Compiles a module's sources against kernel headers if there are any."""

from __future__ import annotations

import platform
from pathlib import Path

from export.toolchain import sandbox
from export.toolchain.harness import CannotRun, run_command

SOURCES = Path("/usr/src")
MODULES = Path("/lib/modules")


def headers() -> Path | None:
    """Headers to compile against: the running kernel's, or else the newest installed; or None."""
    running = MODULES / platform.release() / "build"
    installed = sorted(MODULES.glob("*/build"), key=lambda p: p.stat().st_mtime, reverse=True)
    packaged = sorted(SOURCES.glob("linux-headers-*"), reverse=True)
    for directory in (running, *installed, *packaged):
        # Debian's common half has a Makefile too, but no configuration.
        if (directory / "Makefile").is_file() and (directory / ".config").is_file():
            return directory.resolve()
    return None


def compile_module(work: Path, timeout_s: float) -> str:
    """Compile the sources and Kbuild in a directory.

    Parameters
    ----------
    work : Path
        Objects are left there.
    timeout_s : float

    Returns
    -------
    str
        ``compiled against VERSION``, or why it wasn't.
    """
    if sandbox.box() is not None:
        return "not compiled: its Kbuild isn't what cczoo emits"
    found = headers()
    if found is None:
        return "no kernel headers here: apt-get install linux-headers-amd64"
    version = found.name.removeprefix("linux-headers-")
    command = ["make", "-C", str(found), f"M={work.resolve()}", "modules"]
    try:
        done = run_command(command, timeout_s)
    except CannotRun as error:
        return f"not compiled against {version}: {error}"
    lines = (done.stderr + done.stdout).decode(errors="replace").splitlines()
    if done.returncode or not list(work.glob("*.ko")):
        errors = [line for line in lines if "error" in line.lower()] or lines
        return f"not compiled against {version}: {errors[0] if errors else '?'}"
    warnings = [line for line in lines if "warning: " in line and str(work.name) in line]
    return f"compiled against {version}" + (f", {len(warnings)} warnings" if warnings else "")
