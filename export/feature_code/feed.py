"""Builds an exported feature computation as a kernel would and feeds it connections.

Two subflows are the ordinary case; ``cczoo export --set subflows=3`` makes more.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from export.ir import Ints
from export.toolchain.harness import (
    RUNTIME,
    CannotRun,
    compile_c,
    compile_once,
    find_compiler,
    kernel_flags,
    object_bytes,
    run_command,
    stack_bytes,
)
from features.fixed_sbd import FixedPairs
from features.fixed_series import Calls
from models.sbd.partition import components

STACK_LIMIT = 512
"""Bytes of one frame, as small as the smallest kernels have it."""
HEAD = 5
"""Columns of a row of ``runtime/sbd_driver.c`` before the features."""
_CALL = np.dtype(
    [
        ("time_us", "<u8"),
        ("acked_bytes", "<u8"),
        ("rtt_us", "<u4"),
        ("ca_state", "<i4"),
        ("subflow", "<i4"),
        ("kind", "<i4"),
    ]
)
"""``struct call`` of ``runtime/sbd_driver.c``; kinds are 0 begin, 1 sample, 2 ack."""


@dataclass(frozen=True)
class Answer:
    """What the C computed for one connection.

    Attributes
    ----------
    fixed : FixedPairs
        Windows of pairs.
    classes : int64 array [pairs]
    window : int64 array [windows]
        Indices of the windows that had a partition.
    group, sets : int64 array [windows, subflows], int64 array [windows]
        The partitions, and their numbers of sets.
    verdict : int64 array [windows]
        Of all windows until then, -1 for don't know; -1 too where the model has none.
    """

    fixed: FixedPairs
    classes: Ints
    window: Ints
    group: Ints
    sets: Ints
    verdict: Ints

    def unlike(
        self, meant: FixedPairs, classes: Ints, verdicts: Sequence[int] | None = None
    ) -> int:
        """Pairs' windows that are missing, too many or different, and partitions likewise.

        ``verdicts``, if the model has any, are those meant after each window of two subflows.
        """
        n = min(len(self.classes), len(classes))
        wrong = self.fixed.window[:n] != meant.window[:n]
        wrong |= (self.fixed.pair[:n] != meant.pair[:n]).any(axis=1)
        wrong |= (self.fixed.x[:n] != meant.x[:n]).any(axis=1)
        wrong |= self.classes[:n] != classes[:n]
        pairs = int(wrong.sum()) + max(len(self.classes), len(classes)) - n
        window, group = partitions(meant, classes, self.group.shape[1])
        k = min(len(window), len(self.window))
        other = self.window[:k] != window[:k]
        other |= (self.group[:k] != group[:k]).any(axis=1)
        number = (group[:k] == np.arange(group.shape[1])).sum(axis=1)
        other |= self.sets[:k] != number
        if verdicts is not None:
            other |= self.verdict[:k] != np.array(verdicts, np.int64)[:k]
        return pairs + int(other.sum()) + max(len(window), len(self.window)) - k


def partitions(meant: FixedPairs, classes: Ints, subflows: int) -> tuple[Ints, Ints]:
    """Partitions that follow from pairs' classes.

    Returns
    -------
    window : int64 array [windows]
    group : int64 array [windows, subflows]
    """
    window, at = np.unique(meant.window, return_inverse=True)
    shared = np.zeros((len(window), subflows, subflows), np.bool_)
    shared[at, meant.pair[:, 0], meant.pair[:, 1]] = classes == 1
    return window, components(shared)


class Nanoseconds(NamedTuple):
    """Shortest times: of a call, and of a window's features, class and partition.

    Features and class are those of one pair; of two subflows the partition is the class.
    """

    call: float
    features: float
    classify: float
    partition: float


@dataclass(frozen=True)
class Feed:
    """Compiled feature code.

    Attributes
    ----------
    executable : Path
    flags : list of str
    object_bytes, stack_bytes : int or None
        Code and constants, the model's included; deepest frame.
    features, subflows : int
        Columns of its observations; subflows of its connections.
    """

    executable: Path
    flags: list[str]
    object_bytes: int | None
    stack_bytes: int | None
    features: int
    subflows: int

    @property
    def state_bytes(self) -> int:
        """Size of ``struct sbd``."""
        return int(self._driver([], 0, 10.0)[1])

    def run(self, connections: Sequence[tuple[Calls, int]], timeout_s: float) -> list[Answer]:
        """Windows and partitions of each connection (its calls and which subflow is WiFi).

        Raises
        ------
        CannotRun
            When the program fails.
        """
        out, _ = self._driver(connections, 0, timeout_s)
        rows = np.frombuffer(out, np.int64).reshape(-1, self._columns)
        edges = np.searchsorted(rows[:, 0], np.arange(len(connections) + 1))
        return [self._answer(rows[a:b]) for a, b in pairwise(edges)]

    def nanoseconds(
        self, connection: tuple[Calls, int], rounds: int, timeout_s: float
    ) -> Nanoseconds:
        """Time a connection's calls and the questions about its first windows."""
        _, output = self._driver([connection], rounds, timeout_s)
        return Nanoseconds(*map(float, output.split()[1:]))

    @property
    def _columns(self) -> int:
        return HEAD + max(self.features, self.subflows)

    def _answer(self, rows: Ints) -> Answer:
        pairs, whole = rows[rows[:, 2] >= 0], rows[rows[:, 2] < 0]
        x = pairs[:, HEAD : HEAD + self.features]
        fixed = FixedPairs(pairs[:, 1], pairs[:, 2:4], x)
        group = whole[:, HEAD : HEAD + self.subflows]
        return Answer(fixed, pairs[:, 4], whole[:, 1], group, whole[:, 3], whole[:, 4])

    def _driver(
        self, connections: Sequence[tuple[Calls, int]], rounds: int, timeout_s: float
    ) -> tuple[bytes, str]:
        """What the driver writes to stdout and stderr, given connections' calls."""
        parts = [_records(*connection) for connection in connections]
        calls = np.concatenate(parts) if parts else np.empty(0, _CALL)
        arguments = (len(calls), self.features, self._columns, rounds)
        command = [str(self.executable), *map(str, arguments)]
        done = run_command(command, timeout_s, calls.tobytes())
        output = done.stderr.decode(errors="replace")
        if done.returncode:
            raise CannotRun(f"the compiled features failed ({done.returncode}): {output[:500]}")
        return done.stdout, output


def build_feed(
    bundle: Path,
    identifier: str,
    work: Path,
    timeout_s: float,
    *,
    features: int,
    subflows: int = 2,
    flags: list[str] | None = None,
) -> Feed:
    """Compile a bundle's feature code with the driver that feeds it.

    Parameters
    ----------
    bundle : Path
        Directory with ``<identifier>.h`` and ``<identifier>_sbd.h``.
    identifier : str
    work : Path
        An existing directory for objects.
    timeout_s : float
    features : int
        How many columns the model has.
    subflows : int
        How many the feature code is made for.
    flags : list of str, optional
        The kernel's by default, with a limit on stack frames; sanitizers go to the driver too.

    Raises
    ------
    CannotRun
        When there is no compiler or it refuses the code.
    """
    compiler = find_compiler()
    version = run_command([*compiler, "--version"], timeout_s).stdout.decode(errors="replace")
    flags = [*kernel_flags(), f"-Wframe-larger-than={STACK_LIMIT}"] if flags is None else flags
    header = work / f"{identifier}_sbd.h"
    verdict = f"{identifier}_verdict.h"
    names = [f"{identifier}.h", header.name, *([verdict] if (bundle / verdict).is_file() else [])]
    for name in names:
        shutil.copy(bundle / name, work / name)
    source = work / "unit.c"
    source.write_text(f'#include "{header.name}"\n{(RUNTIME / "sbd_unit.c").read_text()}')
    unit, executable = work / "unit.o", work / "feed"
    stack = [] if "clang" in version.splitlines()[0] else ["-fstack-usage"]
    made_for = f"-DSUBFLOWS={subflows}"
    inside = [*compiler, *flags, *stack, made_for, "-c"]
    included = [*(work / name for name in names), RUNTIME / "sbd_unit.h"]
    compile_once(inside, [source], unit, timeout_s, included)
    kept = [flag for flag in flags if flag.startswith(("-fsanitize", "-fno-sanitize", "-g"))]
    around = [*compiler, "-std=c99", "-O2", *kept]
    source, driver = RUNTIME / "sbd_driver.c", work / "driver.o"
    compile_once([*around, made_for, "-c"], [source], driver, timeout_s, included[-1:])
    compile_c([*around, str(driver), str(unit), "-o", str(executable)], timeout_s)
    sizes = object_bytes(unit, timeout_s), stack_bytes(work / "unit.su")
    return Feed(executable, flags, *sizes, features=features, subflows=subflows)


def _records(calls: Calls, wifi: int) -> NDArray[Any]:
    records = np.zeros(len(calls.subflow) + 1, _CALL)
    records[0]["subflow"] = wifi
    rest = records[1:]
    rest["kind"] = np.where(calls.is_ack, 2, 1)
    for name in ("time_us", "acked_bytes", "rtt_us", "ca_state", "subflow"):
        rest[name] = getattr(calls, name)
    return records
