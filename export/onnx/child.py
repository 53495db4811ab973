"""Runs an ONNX file of unknown origin in a process of its own, with bounded time and memory.

``python -m export.onnx.child MODEL INPUT.npz OUTPUT.npz SECONDS NAME`` is that process: a graph of
harmless operators can still ask for more time or memory than there is, and ONNX Runtime can't be
interrupted.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError, one_line
from export.onnx.run import predict
from export.toolchain.harness import CannotRun

MEMORY_BYTES = 4 << 30
"""Limit of addresses; ONNX Runtime and NumPy take under 1 GiB of it before a model is loaded."""


def predict_apart(
    content: bytes, batches: Sequence[NDArray[np.floating]], name: str, work: Path, timeout_s: float
) -> list[NDArray[np.float64]]:
    """Answer several batches in one child process, each as :func:`export.onnx.run.predict` does.

    Parameters
    ----------
    content : bytes
        The ONNX file.
    batches : sequence of float64 arrays [N, d]
    name : str
        The file's name, for messages.
    work : Path
        A folder for what goes in and out.
    timeout_s : float

    Raises
    ------
    UserError
        When the file is refused.
    CannotRun
        When it takes too long or too much memory.
    """
    model, given, found = work / "model.onnx", work / "given.npz", work / "found.npz"
    model.write_bytes(content)
    np.savez(given, *batches)
    # -P: nothing is imported from the folder at hand, but PYTHONPATH holds, by which DVC's
    # temporary copies of the tree run their own code.
    command = [sys.executable, "-P", "-m", "export.onnx.child", str(model), str(given), str(found)]
    try:
        done = subprocess.run(
            [*command, str(int(timeout_s) + 1), name],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            capture_output=True, timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{name} took longer than {timeout_s:.0f} s") from None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode == 2:
        raise UserError(one_line(lines[-1] if lines else f"{name}: refused"))
    if done.returncode:
        raise CannotRun(f"running {name} ended with {done.returncode}: more memory or time than "
                        f"{MEMORY_BYTES >> 30} GiB and {timeout_s:.0f} s?")  # fmt: skip
    with np.load(found, allow_pickle=False) as answers:
        return [np.asarray(answers[f"arr_{i}"], dtype=np.float64) for i in range(len(batches))]


def main(model: str, given: str, found: str, seconds: str, name: str) -> int:
    """Run it on every array of ``given`` and write the answers; exit status 2 if it is refused."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    content = Path(model).read_bytes()
    try:
        with np.load(given, allow_pickle=False) as batches:
            answers = [predict(content, batches[key], name) for key in batches.files]
    except UserError as error:
        print(one_line(str(error)), file=sys.stderr)
        return 2
    np.savez(found, *answers)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
