"""Compiles the eBPF target's programs, and the C that loads and runs them."""

from __future__ import annotations

import atexit
import os
import platform
import shutil
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from data.place import scratch
from export.toolchain.harness import (
    RUNTIME,
    CannotRun,
    Missing,
    compile_c,
    compile_once,
    find_compiler,
    run_command,
)

BTF = Path("/sys/kernel/btf/vmlinux")
CLANGS = ("clang-14", "clang")
PACKAGES: dict[str, str] = {
    "bpftool": "bpftool",
    "/usr/include/bpf/bpf_helpers.h": "libbpf-dev",
}
"""Command or header -> the Debian package that has it."""
ARCHITECTURES = {"x86_64": "x86", "aarch64": "arm64", "riscv64": "riscv", "s390x": "s390"}
"""Machine -> libbpf's name of it."""
FLAGS = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"]
HOST_FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror"]


def why_not() -> str | None:
    """Why BPF programs can't be built and run here, and what mends it; None if they can."""
    packages = [
        package
        for what, package in PACKAGES.items()
        if not (Path(what).exists() if what.startswith("/") else shutil.which(what))
    ]
    if not any(map(shutil.which, CLANGS)):
        packages.append(CLANGS[0])
    if packages:
        return f"to prove eBPF, install {' '.join(packages)} (apt-get install)"
    if not BTF.exists():
        return f"{BTF} is missing: boot a kernel built with CONFIG_DEBUG_INFO_BTF=y"
    if platform.machine() not in ARCHITECTURES:
        return f"no name of libbpf's is known for {platform.machine()}: verify on another machine"
    if os.geteuid() != 0:
        return "loading eBPF needs root: run it with sudo"
    if run_command(["bpftool", "prog", "list"], 10).returncode:
        return "the kernel refuses BPF: run as root outside a restricted container"
    return None


def clang() -> str:
    """The compiler of BPF programs, which :func:`why_not` found to be there."""
    return next(name for name in CLANGS if shutil.which(name))


def version(command: str) -> str:
    """A compiler's own version line."""
    return run_command([command, "--version"], 10).stdout.decode(errors="replace").splitlines()[0]


@cache
def kernel_types(timeout_s: float) -> bytes:
    """``vmlinux.h``: every type of the running kernel; CannotRun if they can't be read."""
    dumped = run_command(["bpftool", "btf", "dump", "file", str(BTF), "format", "c"], timeout_s)
    if dumped.returncode:
        raise CannotRun(f"bpftool can't read {BTF}: {dumped.stderr.decode(errors='replace')}")
    return dumped.stdout


@cache
def parsed_types(command: tuple[str, ...], timeout_s: float) -> Path:
    """A folder with :func:`kernel_types`, also as ``command`` parsed them, until the process ends.

    They have 130 000 lines, which every program includes.
    """
    kept = ExitStack()
    folder = kept.enter_context(scratch("types"))
    atexit.register(kept.close)
    (folder / "vmlinux.h").write_bytes(kernel_types(timeout_s))
    header = [*command, "-x", "c-header", str(folder / "vmlinux.h")]
    compile_c([*header, "-o", str(folder / "vmlinux.pch")], timeout_s)
    return folder


class Workshop:
    """Builds what lies in a bundle, in a directory of its own.

    Parameters
    ----------
    bundle : Path
        Where the sources are.
    work : Path
        An existing directory for what is built.
    timeout_s : float
        For one compilation.

    Raises
    ------
    Missing
        When something is missing here (the message says what and how to get it).
    """

    def __init__(self, bundle: Path, work: Path, timeout_s: float) -> None:
        if reason := why_not():
            raise Missing(reason)
        self.bundle, self.work, self.timeout_s = bundle, work, timeout_s
        self.types = parsed_types(tuple(self._command()), timeout_s)

    def program(self, source: str, built: str, defines: dict[str, str]) -> Path:
        """Compile a BPF object; CannotRun if clang refuses the source."""
        given = [f"-D{name}={value}" for name, value in defines.items()]
        types = ["-include-pch", str(self.types / "vmlinux.pch"), f"-I{self.types}"]
        command = [*self._command(), *given, *types, "-c", str(self.bundle / source)]
        compile_c([*command, "-o", str(self.work / built)], self.timeout_s)
        return self.work / built

    def _command(self) -> list[str]:
        return [clang(), *FLAGS, f"-D__TARGET_ARCH_{ARCHITECTURES[platform.machine()]}"]

    def host(self, source: Path, built: str) -> Path:
        """Compile a program of user space; CannotRun if the compiler refuses the source."""
        made, command = self.work / built, [*find_compiler(), *HOST_FLAGS]
        included = sorted(source.parent.glob("*.h"))
        compile_once(command, [source], made, self.timeout_s, included, ["-lbpf"])
        return made

    def runtime(self, name: str) -> Path:
        """One of the C programs of ``export/runtime``, compiled at the first call."""
        made = self.work / name
        return made if made.exists() else self.host(RUNTIME / f"{name}.c", name)
