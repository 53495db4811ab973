"""Builds an exported feature computation as a kernel would and feeds it connections."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.harness import (
    RUNTIME,
    CannotRun,
    compile_c,
    find_compiler,
    kernel_flags,
    object_bytes,
    run_command,
    stack_bytes,
)
from export.ir import Ints
from features.fixed_sbd import Fixed, FixedPairs, needs_throughput
from features.fixed_series import Calls
from features.spec import Feature

STACK_LIMIT = 512
"""Bytes of one frame, as small as the smallest kernels have it."""
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
_UNIT = """\
#include "{identifier}_sbd.h"
#include <stddef.h>
size_t unit_bytes(void);
void unit_init(void *s, int wifi);
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state);
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes);
int unit_ready(const void *s);
int unit_features(void *s, int32_t *x);
int unit_classify(void *s);
int64_t unit_window(const void *s);
void unit_again(void *s);
size_t unit_bytes(void) {{ return sizeof(struct sbd); }}
void unit_init(void *s, int wifi) {{ sbd_init(s, wifi); }}
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state)
{{ sbd_sample(s, subflow, time_us, rtt_us, ca_state); }}
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes)
{{ {ack} }}
int unit_ready(const void *s) {{ return sbd_ready(s); }}
int unit_features(void *s, int32_t *x) {{ return sbd_features(s, x); }}
int unit_classify(void *s) {{ return sbd_classify(s); }}
int64_t unit_window(const void *s)
{{ const struct sbd *sbd = s; return (int64_t)sbd->grid[!sbd->filling].window; }}
void unit_again(void *s) {{ ((struct sbd *)s)->ready = 1; }}
"""


@dataclass(frozen=True)
class Answer:
    """What the C said of one connection: ``fixed`` and ``classes`` int64 [windows]."""

    fixed: Fixed
    classes: Ints

    def unlike(self, meant: Fixed | FixedPairs, classes: Ints) -> int:
        """Windows that are missing, too many, or of which anything differs."""
        n = min(len(self.classes), len(classes))
        wrong = self.fixed.window[:n] != meant.window[:n]
        wrong |= (self.fixed.x[:n] != meant.x[:n]).any(axis=1)
        wrong |= self.classes[:n] != classes[:n]
        return int(wrong.sum()) + max(len(self.classes), len(classes)) - n


@dataclass(frozen=True)
class Feed:
    """A compiled companion.

    Attributes
    ----------
    executable : Path
    flags : list of str
    object_bytes, stack_bytes : int or None
        Code and constants, the model's included; deepest frame.
    features : int
        Columns of its observations.
    """

    executable: Path
    flags: list[str]
    object_bytes: int | None
    stack_bytes: int | None
    features: int

    @property
    def state_bytes(self) -> int:
        """Size of ``struct sbd``."""
        return int(self._driver([], 0, 10.0)[1])

    def run(self, connections: Sequence[tuple[Calls, int]], timeout_s: float) -> list[Answer]:
        """Windows of each connection (its calls and which subflow is WiFi).

        Raises
        ------
        CannotRun
            When the program fails.
        """
        out, _ = self._driver(connections, 0, timeout_s)
        rows = np.frombuffer(out, np.int64).reshape(-1, 3 + self.features)
        edges = np.searchsorted(rows[:, 0], np.arange(len(connections) + 1))
        return [
            Answer(Fixed(rows[a:b, 1], rows[a:b, 3:]), rows[a:b, 2]) for a, b in pairwise(edges)
        ]

    def nanoseconds(
        self, connection: tuple[Calls, int], rounds: int, timeout_s: float
    ) -> tuple[float, float, float]:
        """Per call, per ``sbd_features`` and per ``sbd_classify`` of a window: the shortest."""
        _, said = self._driver([connection], rounds, timeout_s)
        each, computed, classified = map(float, said.split()[1:])
        return each, computed, classified

    def _driver(
        self, connections: Sequence[tuple[Calls, int]], rounds: int, timeout_s: float
    ) -> tuple[bytes, str]:
        return run_driver(self.executable, (self.features, rounds), connections, timeout_s)


def build_feed(
    bundle: Path,
    identifier: str,
    work: Path,
    timeout_s: float,
    *,
    features: Sequence[Feature],
    flags: list[str] | None = None,
) -> Feed:
    """Compile a bundle's companion with its driver.

    Parameters
    ----------
    bundle : Path
        Directory with ``<identifier>.h`` and ``<identifier>_sbd.h``.
    identifier : str
    work : Path
        An existing directory for objects.
    timeout_s : float
    features : sequence of Feature
        The model's columns.
    flags : list of str, optional
        The kernel's by default, with a limit on stack frames; sanitizers go to the driver too.

    Raises
    ------
    CannotRun
        When there is no compiler or it refuses the code.
    """
    unit = _UNIT.format(identifier=identifier, ack=ack_statement(features))
    made_of = (bundle, identifier, work, timeout_s)
    return Feed(*compile_unit(*made_of, unit, "sbd_driver.c", flags), features=len(features))


def ack_statement(features: Sequence[Feature]) -> str:
    """What ``unit_ack`` does: the companion of a model without throughput has no ``sbd_ack``."""
    if needs_throughput(features):
        return "sbd_ack(s, subflow, time_us, acked_bytes);"
    return "(void)s; (void)subflow; (void)time_us; (void)acked_bytes;"


def compile_unit(
    bundle: Path,
    identifier: str,
    work: Path,
    timeout_s: float,
    text: str,
    driver: str,
    flags: list[str] | None,
) -> tuple[Path, list[str], int | None, int | None]:
    """Compile C that includes a bundle's companion, and a driver of ``runtime`` around it.

    Returns
    -------
    executable : Path
    flags : list of str
        The unit's.
    object_bytes, stack_bytes : int or None
        Its code and constants, and its deepest frame.
    """
    compiler = find_compiler()
    version = run_command([*compiler, "--version"], timeout_s).stdout.decode(errors="replace")
    flags = [*kernel_flags(), f"-Wframe-larger-than={STACK_LIMIT}"] if flags is None else flags
    for name in (f"{identifier}.h", f"{identifier}_sbd.h"):
        shutil.copy(bundle / name, work / name)
    unit, model, executable = work / "unit.c", work / "unit.o", work / "feed"
    unit.write_text(text)
    stack = [] if "clang" in version.splitlines()[0] else ["-fstack-usage"]
    compile_c([*compiler, *flags, *stack, "-c", str(unit), "-o", str(model)], timeout_s)
    kept = [flag for flag in flags if flag.startswith(("-fsanitize", "-fno-sanitize", "-g"))]
    around = [*compiler, "-std=c99", "-O2", *kept, str(RUNTIME / driver), str(model)]
    compile_c([*around, "-o", str(executable)], timeout_s)
    return (
        executable,
        flags,
        object_bytes(model, timeout_s),
        stack_bytes(work / "unit.su"),
    )


def run_driver(
    executable: Path,
    arguments: Sequence[int],
    connections: Sequence[tuple[Calls, int]],
    timeout_s: float,
) -> tuple[bytes, str]:
    """Give a driver the calls of connections (and which subflow is WiFi); what it wrote.

    Raises
    ------
    CannotRun
        When it fails.
    """
    parts = [_records(*connection) for connection in connections]
    calls = np.concatenate(parts) if parts else np.empty(0, _CALL)
    command = [str(executable), *map(str, (len(calls), *arguments))]
    done = run_command(command, timeout_s, calls.tobytes())
    said = done.stderr.decode(errors="replace")
    if done.returncode:
        raise CannotRun(f"the compiled features failed ({done.returncode}): {said[:500]}")
    return done.stdout, said


def _records(calls: Calls, wifi: int) -> NDArray[Any]:
    records = np.zeros(len(calls.subflow) + 1, _CALL)
    records[0]["subflow"] = wifi
    rest = records[1:]
    rest["kind"] = np.where(calls.is_ack, 2, 1)
    for name in ("time_us", "acked_bytes", "rtt_us", "ca_state", "subflow"):
        rest[name] = getattr(calls, name)
    return records
