"""Runs compiled models inside the kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.ir import Ints, Verdicts
from export.toolchain.harness import CannotRun, run_command


@dataclass(frozen=True)
class Answers:
    """What a run gave.

    Attributes
    ----------
    verdicts : list of Verdicts
        One per table loaded, a single one if the program has no table.
    figures : dict of str to int
        ``verified_insns``, ``xlated_bytes``, ``jited_bytes``, ``stack_bytes``, ``decide_ns``,
        ``baseline_ns``; with two tables ``swap_first``, ``swap_second``, ``swap_mixed``.
    map_bytes : dict of str to int
        Bytes of each map.
    """

    verdicts: list[Verdicts]
    figures: dict[str, int]
    map_bytes: dict[str, int]

    @property
    def ns_per_decision(self) -> int:
        """Nanoseconds, the empty program's subtracted."""
        return max(0, self.figures["decide_ns"] - self.figures["baseline_ns"])


def run(
    runner: Path,
    program: Path,
    x: Ints,
    timed: Ints,
    timeout_s: float,
    table: Sequence[str | Path] = (),
    outputs: int = 1,
) -> Answers:
    """Answer observations in the kernel and time the program.

    Parameters
    ----------
    runner : Path
        ``export/runtime/bpf_run.c``, compiled.
    program : Path
        The test program, compiled.
    x, timed : int64 array [N, d] and [M, d]
        Observations to answer and to time.
    timeout_s : float
    table : sequence
        The loader, the name of the outer map, the table's file and perhaps another's.
    outputs : int
        Scores per answer.

    Raises
    ------
    CannotRun
        With the reason, the verifier's too.
    """
    command = [str(runner), str(program), str(len(x)), str(len(timed)), *map(str, table)]
    rows = np.concatenate([x, timed]).astype(np.int32).tobytes()
    done = run_command(command, timeout_s, rows)
    output = done.stderr.decode(errors="replace")
    if done.returncode:
        raise CannotRun(f"the kernel didn't run it: {_reason(output)}")
    tables = max(1, len(table) - 2)
    numbers = np.frombuffer(done.stdout, dtype=np.int64)
    each = outputs + 1
    if len(numbers) != each * len(x) * tables:
        raise CannotRun(f"the program gave {len(numbers) // each} of {len(x) * tables} answers")
    figures, maps = _report(output)
    parts = numbers.reshape(tables, len(x), each)
    scores = [part[:, 0] if outputs == 1 else part[:, :-1] for part in parts]
    verdicts = [Verdicts(part[:, -1], one) for part, one in zip(parts, scores, strict=True)]
    return Answers(verdicts, figures, maps)


def register(runner: Path, program: Path, name: str, timeout_s: float) -> dict[str, int]:
    """Register a congestion control under ``name`` and unregister it again.

    Returns
    -------
    dict of str to int
        Of its ``cong_avoid``: ``verified_insns``, ``xlated_bytes``, ``jited_bytes``,
        ``stack_bytes``.

    Raises
    ------
    CannotRun
        With the reason, the verifier's too.
    """
    done = run_command([str(runner), str(program), name], timeout_s)
    output = done.stderr.decode(errors="replace")
    if done.returncode:
        raise CannotRun(f"the kernel didn't take the congestion control: {_reason(output)}")
    return _report(output)[0]


def _report(output: str) -> tuple[dict[str, int], dict[str, int]]:
    maps = {name: int(n) for name, n in re.findall(r"^map (\S+) (\d+)$", output, re.M)}
    figures = {name: int(n) for name, n in re.findall(r"^(\w+) (\d+)$", output, re.M)}
    return figures, maps


def _reason(output: str) -> str:
    """The runner's own last word, and before it the verifier's."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("error ") for line in lines if line.startswith("error ")]
    verifier = [line.removeprefix("verifier ") for line in lines if line.startswith("verifier ")]
    return "; ".join([*errors[-1:], *verifier[-1:]]) or (lines[-1] if lines else "no reason given")
