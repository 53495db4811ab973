"""Simulator functions are compiled here; machine code kept from older sources is removed."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

_INTERPRETED = (
    "bounds.py", "capacity.py", "elements.py", "events.py", "metrics.py", "network.py",
    "records.py", "runner.py", "scenario.py", "traces.py", "wireless.py", "workload.py",
)  # fmt: skip
"""Files of which no function is compiled."""

F = TypeVar("F", bound=Callable[..., Any])
JIT_OFF = bool(getattr(numba.config, "DISABLE_JIT", 0))
"""Whether NUMBA_DISABLE_JIT is set: everything is interpreted."""
_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_NAMES = "data/schema.py"
"""Variables' numbers follow from it, which compiled code has in it."""
# No contraction, no reassociation: results are the same with the JIT off.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """Compile a function of the simulator (nopython, without the GIL); not for Python to call."""
    return cast(F, numba.njit(**_INNER)(function))


def inlined(function: F) -> F:
    """Compile a small function that is always inlined into its callers."""
    return cast(F, numba.njit(forceinline=True, **_INNER)(function))


def entry(function: F) -> F:
    """Compile a function called from Python; its machine code is kept on disk.

    Its file may lie elsewhere: list in ``SOURCES`` there what it compiles besides the simulator.
    """
    if JIT_OFF:
        return function
    _forget_stale_code(function)
    machine_code = numba.njit(cache=True, **_OPTIONS)(function)
    ready = False

    def prepare(arguments: tuple[Any, ...]) -> Any:
        nonlocal ready
        if not ready:
            # numba's own lock: no other thread, here or in numba, compiles by changed settings.
            with global_compiler_lock:
                if not machine_code.signatures:
                    with _one_process(function), _optimised_once(function.__qualname__):
                        machine_code.compile(tuple(map(machine_code.typeof_pyval, arguments)))
                ready = True
        return machine_code

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return prepare(arguments)(*arguments)

    _PREPARE[call] = prepare
    return cast(F, call)


_PREPARE: dict[Callable[..., Any], Callable[[tuple[Any, ...]], Any]] = {}


def pointer(function: Callable[..., Any], *arguments: Any) -> Any:
    """Address of an entry point, by which compiled code calls it without compiling it again.

    Parameters
    ----------
    function : callable
        Decorated with `entry`; takes and returns whole numbers.
    *arguments
        What it is called with; only their types count.

    Returns
    -------
    int
        The function itself if nothing is compiled. See `data.netsim.reference.call`.
    """
    if JIT_OFF:
        return function
    machine_code = _PREPARE[function](arguments)
    kept = machine_code.overloads[tuple(map(machine_code.typeof_pyval, arguments))]
    return int(kept.library.get_pointer_to_function(kept.fndesc.llvm_cfunc_wrapper_name))


@contextmanager
def _one_process(function: Callable[..., Any]) -> Iterator[None]:
    """Let others wait while one process compiles a function: they then read what it has kept."""
    cache = Path(function.__code__.co_filename).parent / "__pycache__"
    try:
        cache.mkdir(exist_ok=True)
        lock = (cache / f"{function.__module__}.{function.__qualname__}.lock").open("ab")
    except OSError:
        # A read-only installation: each process compiles for itself.
        yield
        return
    with lock:
        # Some network file systems have no locks: each process compiles for itself there, too.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _optimised_once(name: str) -> Iterator[None]:
    """Leave optimisation and code generation to the function ``name``.

    numba optimises every function together with all that it calls, and so again on each level
    of calls: here, ten times over. Only the entry point's code is ever run. If a release of
    numba has other internals, everything is compiled as usual, just slower.
    """
    from numba.core import codegen

    library: Any = getattr(codegen, "CPUCodeLibrary", None)
    generator: Any = getattr(codegen, "JITCPUCodegen", None)
    optimise = getattr(library, "_optimize_final_module", None)
    add = getattr(generator, "_add_module", None)
    bind = getattr(generator, "set_env", None)
    if optimise is None or add is None or bind is None:
        yield
        return

    def optimise_entry(self: Any) -> None:
        if self.name == name:
            optimise(self)

    def add_entry(self: Any, module: Any) -> Any:
        return add(self, module) if module.name.startswith(name) else None

    def bind_entry(self: Any, env_name: str, env: Any) -> None:
        # The environments of the others, as in code read from disk, are never bound nor used.
        if self._engine.is_symbol_defined(env_name):
            bind(self, env_name, env)

    library._optimize_final_module = optimise_entry
    generator._add_module = add_entry
    generator.set_env = bind_entry
    try:
        yield
    finally:
        library._optimize_final_module = optimise
        generator._add_module = add
        generator.set_env = bind


def _forget_stale_code(function: Callable[..., Any]) -> None:
    """Remove a function's kept code if it is of any other version of the sources.

    numba looks only at the file of the entry point, yet every other file is compiled into it.
    """
    path = Path(function.__code__.co_filename)
    sources = [p for p in sorted(_HERE.rglob("*.py")) if p.name not in _INTERPRETED]
    sources += [_ROOT / name for name in (_NAMES, *function.__globals__.get("SOURCES", ()))]
    digest = hashlib.sha256(path.read_bytes())
    for source in sources:
        digest.update(source.read_bytes())
    cache = path.parent / "__pycache__"
    code = f"{path.stem}.{function.__qualname__}"
    stamp = cache / f"{code}.sha256"
    try:
        if stamp.exists() and stamp.read_text(encoding="ascii") == digest.hexdigest():
            return
        cache.mkdir(exist_ok=True)
        for kept in cache.glob(f"{code}-*.nb[ic]"):
            kept.unlink(missing_ok=True)
        draft = stamp.with_suffix(f".{os.getpid()}")
        draft.write_text(digest.hexdigest(), encoding="ascii")
        draft.replace(stamp)
    except OSError:
        # A read-only installation: numba keeps its code elsewhere, per file as usual.
        return
