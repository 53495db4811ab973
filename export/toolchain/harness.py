"""Compiles generated C as a kernel would and runs it in a process of its own."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.ir import Ints, Verdicts
from export.toolchain import sandbox
from export.toolchain.once import once

KERNEL_FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-O2"]
"""No warning, no libc; with ``-mgeneral-regs-only`` no floating point either."""
SANITIZER_FLAGS = [
    *("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-g"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
]
RUNTIME = Path(__file__).parents[1] / "runtime"


class CannotRun(Exception):
    """The target can't be run here; the message says what is missing or what went wrong."""


class Missing(CannotRun):
    """Something needed for running isn't on this machine; nothing is known about the target."""


@dataclass(frozen=True)
class Program:
    """A compiled model.

    Attributes
    ----------
    executable : Path
    compiler : str
        Its own version line.
    flags : list of str
    object_bytes, stack_bytes : int or None
        Code and constants of the model alone; deepest frame of its functions.
    outputs : int
        Scores per answer.
    """

    executable: Path
    compiler: str
    flags: list[str]
    object_bytes: int | None
    stack_bytes: int | None
    outputs: int = 1

    def run(self, x: Ints, timeout_s: float) -> Verdicts:
        """Answers on observations (int64 array [N, d]).

        Raises
        ------
        CannotRun
            When the program crashes, hangs or answers something else than asked.
        """
        numbers = np.frombuffer(self._driver(x, 0, timeout_s).stdout, dtype=np.int64)
        if len(numbers) != (self.outputs + 1) * len(x):
            found = len(numbers) // (self.outputs + 1)
            raise CannotRun(f"the compiled model gave {found} of {len(x)} answers")
        answers = numbers.reshape(len(x), self.outputs + 1)
        scores = answers[:, 0] if self.outputs == 1 else answers[:, :-1]
        return Verdicts(answers[:, -1], scores)

    def ns_per_decision(self, x: Ints, timeout_s: float) -> float:
        """Nanoseconds per call of ``classify``, walking through int64 array [N, d] observations."""
        time = float(self._driver(x, len(x), timeout_s).stderr)
        if not 0 <= time < float("inf"):
            raise CannotRun(f"the compiled model took {time} ns per decision")
        return time

    def _driver(
        self, x: Ints, timed_rows: int, timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        rows, columns = x.shape
        numbers = (columns, rows, timed_rows, self.outputs)
        command = [str(self.executable), *map(str, numbers)]
        done = run_command(command, timeout_s, x.astype(np.int32).tobytes())
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise CannotRun(f"the compiled model failed ({done.returncode}): {' '.join(lines[:3])}")
        return done


def find_compiler() -> list[str]:
    """The C compiler's command: ``$CC``, gcc, clang or cc, whichever is there first.

    Raises
    ------
    Missing
        When there is none.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    for command in [chosen] if chosen else [["gcc"], ["clang"], ["cc"]]:
        if shutil.which(command[0]):
            return command
    what = f"$CC is {shlex.join(chosen)}, which isn't there" if chosen else "no C compiler found"
    raise Missing(f"{what}: install gcc or clang (apt-get install gcc) and run verify again")


def kernel_flags() -> list[str]:
    """:data:`KERNEL_FLAGS` and, if the machine knows it, the refusal of float registers."""
    known = platform.machine() in {"x86_64", "aarch64", "AMD64", "arm64"}
    return [*KERNEL_FLAGS, *(["-mgeneral-regs-only"] if known else [])]


def build(
    header: Path,
    identifier: str,
    work: Path,
    timeout_s: float,
    *,
    flags: list[str] | None = None,
    outputs: int = 1,
    unit: str | None = None,
    beside: Sequence[Path] = (),
    hosted: str | None = None,
) -> Program:
    """Compile a generated header with the driver.

    Parameters
    ----------
    header : Path
        Defines ``<identifier>_classify`` and ``<identifier>_score``, with several outputs
        ``<identifier>_scores``.
    identifier : str
    work : Path
        An existing directory for objects.
    timeout_s : float
    flags : list of str, optional
        :func:`kernel_flags` by default. They go to the model alone, sanitizers to the driver too.
    outputs : int
        Scores per answer.
    unit : str, optional
        C that includes ``model.h`` and defines ``model_answer`` and ``model_classify`` for the
        driver; :func:`plain_unit` by default.
    beside : sequence of Path
        More files that the unit includes.
    hosted : str, optional
        C that the unit needs and that may use libc; it counts for nothing in the program's sizes.

    Returns
    -------
    Program

    Raises
    ------
    CannotRun
        When there is no compiler or it refuses the code.
    """
    compiler = find_compiler()
    flags = kernel_flags() if flags is None else flags
    shutil.copy(header, work / "model.h")
    for path in beside:
        shutil.copy(path, work / path.name)
    source = work / "model.c"
    source.write_text(plain_unit(identifier, outputs) if unit is None else unit)
    version = run_command([*compiler, "--version"], timeout_s).stdout.decode(errors="replace")
    stack = [] if "clang" in version.splitlines()[0] else ["-fstack-usage"]
    model, executable = work / "model.o", work / "model"
    included = [work / "model.h", *(work / path.name for path in beside)]
    compile_once([*compiler, *flags, *stack, "-c"], [source], model, timeout_s, included)
    kept = [flag for flag in flags if flag.startswith(("-fsanitize", "-fno-sanitize", "-g"))]
    around = [*compiler, "-std=c99", "-O2", *kept]
    driver = work / "driver.o"
    compile_once([*around, "-c"], [RUNTIME / "driver.c"], driver, timeout_s)
    linked = [str(driver), str(model)]
    if hosted is not None:
        (work / "hosted.c").write_text(hosted)
        linked.append(str(work / "hosted.c"))
    compile_c([*around, *linked, "-o", str(executable)], timeout_s)
    return Program(
        executable,
        version.splitlines()[0],
        flags,
        object_bytes(model, timeout_s),
        stack_bytes(work / "model.su"),
        outputs,
    )


def plain_unit(identifier: str, outputs: int) -> str:
    """The driver's functions around a header without state."""
    fill = (
        f"scores[0] = {identifier}_score(f)" if outputs == 1 else f"{identifier}_scores(f, scores)"
    )
    return (
        '#include "model.h"\n'
        "int model_answer(const int32_t *f, int64_t *scores);\n"
        "int model_classify(const int32_t *f);\n"
        "int model_answer(const int32_t *f, int64_t *scores)\n"
        f"{{ {fill}; return {identifier}_classify(f); }}\n"
        f"int model_classify(const int32_t *f) {{ return {identifier}_classify(f); }}\n"
    )


def compile_c(command: list[str], timeout_s: float) -> None:
    """Run a compiler, or CannotRun with its first error."""
    done = run_command(command, timeout_s)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        errors = [line for line in lines if "error" in line] or lines
        raise CannotRun(f"{command[0]} refuses the code: {errors[0] if errors else '?'}")


def compile_once(
    command: list[str],
    sources: Sequence[Path],
    made: Path,
    timeout_s: float,
    included: Sequence[Path] = (),
    libraries: Sequence[str] = (),
) -> None:
    """Compile files, or take what the same compiler made of the same bytes in this process.

    Parameters
    ----------
    command : list of str
        The compiler and its flags, without paths.
    sources : sequence of Path
    made : Path
        Where the object or the program goes.
    timeout_s : float
    included : sequence of Path
        Every file that the sources include and that isn't the system's.
    libraries : sequence of str
        Told to the linker.

    Raises
    ------
    CannotRun
        When the compiler refuses the code.
    """
    folders = dict.fromkeys(f"-I{path.parent}" for path in included)
    words = [*command, *folders, *map(str, sources), "-o", str(made), *libraries]
    once([*command, *libraries], [*sources, *included], made, lambda: compile_c(words, timeout_s))


def object_bytes(path: Path, timeout_s: float) -> int | None:
    """Code and constants of an object file; None if ``size`` isn't there."""
    if not shutil.which("size"):
        return None
    done = run_command(["size", "-A", str(path)], timeout_s)
    sections = re.findall(r"^\.(?:text|rodata|data|bss)\S*\s+(\d+)", done.stdout.decode(), re.M)
    return sum(map(int, sections))


def stack_bytes(path: Path) -> int | None:
    """Deepest frame in a compiler's ``.su`` file; None if it wrote none."""
    if not path.exists():
        return None
    return max((int(line.split("\t")[1]) for line in path.read_text().splitlines()), default=0)


def run_command(
    command: list[str], timeout_s: float, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command with captured output, within :func:`export.toolchain.sandbox.confined`.

    Raises
    ------
    CannotRun
        When it can't be started or takes longer than ``timeout_s``.
    """
    box = sandbox.box()
    try:
        if box is not None:
            return box.run(command, timeout_s, stdin)
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{Path(command[0]).name} took longer than {timeout_s:.0f} s") from None
    except OSError as error:
        raise CannotRun(f"{command[0]}: {error.strerror}") from None
