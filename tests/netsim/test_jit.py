"""Compilation in several threads and processes at once."""

from __future__ import annotations

import errno
import fcntl
import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from numba.core import codegen

from data.netsim import jit

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


PROCESS = """
import inspect, sys, time
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
import once_in_processes as module

(folder / f"{sys.argv[2]}.ready").touch()
while len(list(folder.glob("*.ready"))) < 3:
    time.sleep(0.01)
assert module.once(3) == 5
prepare = inspect.getclosurevars(module.once).nonlocals["prepare"]
stats = inspect.getclosurevars(prepare).nonlocals["machine_code"].stats
print(sum(stats.cache_misses.values()))
"""


def test_of_processes_that_need_a_function_at_once_one_compiles_it(tmp_path: Path) -> None:
    (tmp_path / "once_in_processes.py").write_text(SOURCE, encoding="utf-8")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), str(number)],
            cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True,
        )
        for number in range(3)
    ]  # fmt: skip
    compiled = [int(process.communicate()[0]) for process in running]
    assert sorted(compiled) == [0, 0, 1]


def test_a_file_system_without_locks_is_compiled_on_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(jit, "_HERE", tmp_path)

    def unlocked() -> None:
        """Never compiled."""

    entered = []
    with jit._one_process(unlocked):
        entered.append(1)
    assert entered
    # What fails while the function is compiled isn't taken for a missing lock.
    with pytest.raises(FileNotFoundError), jit._one_process(unlocked):
        raise FileNotFoundError
