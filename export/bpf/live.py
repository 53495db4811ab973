"""Registers a model's congestion control in the running kernel, counts what it does, removes it."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from data.errors import UserError
from data.lab import agent, build, coupled
from data.lab.registered import bpftool, maps_of, operations
from export.bundle.manifest import Bundle
from export.bundle.plain_files import Broken
from export.bundle.reemit import read_emitted

LOCK = Path("/run/lock/cczoo-live")
RUN_TIME = 0
"""The kernel's BPF_STATS_RUN_TIME."""


@dataclass(frozen=True)
class Controller:
    """What runs while :func:`loaded` holds.

    Attributes
    ----------
    name : str
        Of the congestion control.
    agent : Path
        The program compiled for the model.
    decisions : int
        Id of the map between the two.
    programs : dict of str to int
        Operation (``cong_avoid`` ...) -> id of its BPF program.
    """

    name: str
    agent: Path
    decisions: int
    programs: dict[str, int]


def open_bundle(directory: Path) -> Bundle:
    """Read a bundle that can run live.

    Raises
    ------
    UserError
        The bundle isn't intact, isn't what this cczoo emits for its model, or lacks the
        congestion control or the features in C.
    """
    try:
        bundle = read_emitted(directory)
    except Broken as error:
        raise UserError(f"{directory}: {error}") from None
    for part in (f"{bundle.identifier}_sbd.h", f"{bundle.identifier}_cc.bpf.c"):
        if part not in bundle.manifest["files"]:
            raise UserError(
                f"{directory}: no {part}: export a model of the smartsbd family with -t c -t bpf"
            )
    return bundle


@contextlib.contextmanager
def loaded(bundle: Bundle, work: Path) -> Iterator[Controller]:
    """Compile and register a bundle's congestion control; take it out at the end.

    Parameters
    ----------
    bundle : Bundle
        See :func:`open_bundle`.
    work : Path
        Folder for the compiled files.

    Yields
    ------
    Controller
        Its map of decisions is empty.

    Raises
    ------
    UserError
        Another live run goes on, or the model doesn't compile or load.
    """
    build.build()
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError("another live run goes on on this machine; wait for its end") from None
        coupled.unregister(coupled.LIVE)
        # What was found intact is compiled, whatever happens to the directory meanwhile.
        bundle = bundle.copied(work / "bundle")
        program = work / "agent"
        agent.compile_agent(bundle.directory, bundle.identifier, program)
        coupled.ensure(_compile(bundle, work), coupled.LIVE)
        try:
            programs = operations(coupled.LIVE)
            maps = maps_of(programs["cong_avoid"])
            if "decisions" not in maps:
                raise UserError(f"{bundle.directory}: no map 'decisions'; export the model again")
            decisions = maps["decisions"]
            # The kernel keeps 15 characters of a map's name.
            table = maps.get(f"{bundle.identifier}_models"[:15])
            if table is not None:
                _fill(bundle, table, work)
            yield Controller(coupled.LIVE, program, decisions, programs)
        finally:
            coupled.unregister(coupled.LIVE)


def _compile(bundle: Bundle, work: Path) -> Path:
    source = bundle.directory / f"{bundle.identifier}_cc.bpf.c"
    made = work / f"{coupled.LIVE}.bpf.o"
    # Another name than the exported one: `cczoo verify` may load that meanwhile.
    command = ["clang-14", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86"]
    command += ["-Wall", f"-I{build.BUILD}", f"-I{bundle.directory}"]
    command += [f"-Dcczoo_sbd={coupled.LIVE}", f'-DCC_NAME="{coupled.LIVE}"']
    command += ["-c", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise UserError(f"{source}: {(errors or ['?'])[0].strip()}; run: cczoo verify")
    return made


def _fill(bundle: Bundle, table: int, work: Path) -> None:
    """Put the model's nodes into the map that its congestion control walks."""
    loader = work / "load"
    source = bundle.directory / f"{bundle.identifier}_load.c"
    nodes = bundle.directory / f"{bundle.identifier}.nodes.bin"
    compile_it = ["gcc", "-O2", "-o", str(loader), str(source), "-lbpf"]
    for command in (compile_it, [str(loader), str(nodes), str(table)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = " ".join(done.stderr.split())[-300:]
            raise UserError(f"{source}: {reason}; run: cczoo verify {bundle.directory}")


@contextlib.contextmanager
def statistics() -> Iterator[None]:
    """Have the kernel count and time BPF programs, for as long as this process lives at most."""
    try:
        # Unlike the sysctl, what this returns ends with its process, even a killed one.
        fd = ctypes.CDLL("libbpf.so.1").bpf_enable_stats(RUN_TIME)
    except (OSError, AttributeError) as error:
        raise UserError(f"{error}; run: apt-get install -y libbpf-dev") from None
    if fd < 0:
        raise UserError("the kernel refuses to time BPF programs; run as root")
    try:
        yield
    finally:
        os.close(fd)


def counts(programs: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Runs and nanoseconds of each operation, since its program was loaded."""
    result = {}
    for operation, number in programs.items():
        shown = bpftool("prog", "show", "id", str(number))
        result[operation] = (int(shown.get("run_cnt", 0)), int(shown.get("run_time_ns", 0)))
    return result


def since(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]
) -> dict[str, dict[str, int]]:
    """Difference of two :func:`counts`."""
    return {
        operation: {"runs": runs - before[operation][0], "ns": ns - before[operation][1]}
        for operation, (runs, ns) in after.items()
    }
