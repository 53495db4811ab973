"""Compilation in several threads at once."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from numba.core import codegen

SOURCE = """
from data.netsim.jit import entry

@entry
def once(x):
    total = 0
    for i in range(x):
        total += i * i
    return total
"""


def test_threads_that_compile_at_once_leave_numba_as_it_was(tmp_path: Path) -> None:
    """Settings changed for one function and never restored crash every later compilation."""
    path = tmp_path / "once.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("once", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = codegen.CPUCodeLibrary._optimize_final_module
    together = Barrier(4)

    def call(x: int) -> int:
        together.wait()
        return int(module.once(x))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, [3] * 4)) == [5] * 4
    assert codegen.CPUCodeLibrary._optimize_final_module is before
