"""Runs generated C under the address and undefined behaviour sanitizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from export.ir import Ints, Verdicts
from export.toolchain.harness import (
    SANITIZER_FLAGS,
    CannotRun,
    build,
    compile_once,
    find_compiler,
    run_command,
)

SANITIZERS = "-fsanitize=address,undefined"


def sanitized(
    header: Path,
    identifier: str,
    work: Path,
    timeout_s: float,
    x: Ints,
    answers: Verdicts,
    **how: Any,
) -> dict[str, Any]:
    """Run a generated header under the address and undefined behaviour sanitizers.

    Parameters
    ----------
    header, identifier, work, timeout_s
        As :func:`build` takes them.
    x : int64 array [N, d]
        Observations.
    answers : Verdicts
        What the header answered without sanitizers.
    **how
        ``outputs``, ``unit``, ``beside``, ``hosted`` of :func:`build`.

    Returns
    -------
    dict
        ``vectors`` and ``findings`` (0); if the compiler has no sanitizers, ``vectors`` is 0 and
        ``why`` gives the reason.

    Raises
    ------
    CannotRun
        With the first finding: a report of a sanitizer, or another answer than before, which code
        without undefined behaviour doesn't give.
    """
    inside = work / "sanitized"
    inside.mkdir()
    try:
        program = build(header, identifier, inside, timeout_s, flags=SANITIZER_FLAGS, **how)
        found = program.run(x, timeout_s)
    except CannotRun as error:
        # Asked only now: where sanitizers run, which is nearly everywhere, it costs nothing.
        if missing := no_sanitizers(inside, timeout_s):
            return {"vectors": 0, "findings": 0, "why": missing}
        raise CannotRun(f"under {SANITIZERS}: {error}") from None
    if not all(np.array_equal(a, b) for a, b in zip(found, answers, strict=True)):
        raise CannotRun(f"under {SANITIZERS}: other answers than without")
    return {"vectors": len(x), "findings": 0}


def no_sanitizers(work: Path, timeout_s: float) -> str:
    """Why the compiler's programs can't run under sanitizers; empty if they can."""
    source = work / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    compiler = find_compiler()
    executable = work / "empty"
    try:
        compile_once([*compiler, *SANITIZER_FLAGS], [source], executable, timeout_s)
        done = run_command([str(executable)], timeout_s)
    except CannotRun as error:
        return str(error)
    return "" if done.returncode == 0 else f"{compiler[0]}: its sanitizers don't run here"
