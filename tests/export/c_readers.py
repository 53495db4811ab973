"""Builds the C readers of table files with a program of a test around them, under sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from export.toolchain.harness import RUNTIME, SANITIZER_FLAGS


def built(work: Path, program: str, reader: str) -> Path:
    """The executable; skips the test on a machine without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler on this machine")
    (work / "main.c").write_text(program)
    sources = [str(work / "main.c"), str(RUNTIME / reader), f"-I{RUNTIME}"]
    subprocess.run([compiler, *SANITIZER_FLAGS, *sources, "-o", work / "reader"], check=True)
    return work / "reader"
