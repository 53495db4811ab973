"""Builds an exported feature computation of three and more subflows, and feeds it connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from export.companions.feed import ack_statement, compile_unit, run_driver
from export.ir import Ints
from features.fixed_sbd import FixedPairs
from features.fixed_series import Calls
from features.spec import Feature
from models.sbd.partition import components

HEAD = 5
"""Columns of a row of ``runtime/sbd_partition_driver.c`` before the features."""
_UNIT = """\
#include "{identifier}_sbd.h"
#include <stddef.h>
size_t unit_bytes(void);
int unit_subflows(void);
void unit_init(void *s, int wifi);
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state);
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes);
int unit_ready(const void *s);
int unit_features(void *s, int a, int b, int32_t *x);
int unit_classify(void *s, int a, int b);
int unit_partition(void *s, uint8_t *group);
int64_t unit_window(const void *s);
void unit_again(void *s);
size_t unit_bytes(void) {{ return sizeof(struct sbd); }}
int unit_subflows(void) {{ return SBD_SUBFLOWS; }}
void unit_init(void *s, int wifi) {{ sbd_init(s, wifi); }}
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state)
{{ sbd_sample(s, subflow, time_us, rtt_us, ca_state); }}
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes)
{{ {ack} }}
int unit_ready(const void *s) {{ return sbd_ready(s); }}
int unit_features(void *s, int a, int b, int32_t *x) {{ return sbd_pair_features(s, a, b, x); }}
int unit_classify(void *s, int a, int b) {{ return sbd_pair_classify(s, a, b); }}
int unit_partition(void *s, uint8_t *group) {{ return sbd_partition(s, group); }}
int64_t unit_window(const void *s)
{{ const struct sbd *sbd = s; return (int64_t)sbd->grid[!sbd->filling].window; }}
void unit_again(void *s) {{ ((struct sbd *)s)->ready = 1; }}
"""


@dataclass(frozen=True)
class PairAnswer:
    """What the C said of one connection.

    Attributes
    ----------
    fixed : FixedPairs
        Windows of pairs.
    classes : int64 [pairs]
    window : int64 [windows]
        Indices of the windows that had a partition.
    group, sets : int64 [windows, subflows], int64 [windows]
        The partitions, and their numbers of sets.
    """

    fixed: FixedPairs
    classes: Ints
    window: Ints
    group: Ints
    sets: Ints

    def unlike(self, meant: FixedPairs, classes: Ints) -> int:
        """Pairs' windows that are missing, too many or different, and partitions likewise."""
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
        return pairs + int(other.sum()) + max(len(window), len(self.window)) - k


def partitions(meant: FixedPairs, classes: Ints, subflows: int) -> tuple[Ints, Ints]:
    """Windows and partitions, int64 [windows] and [windows, subflows], from pairs' classes."""
    window, at = np.unique(meant.window, return_inverse=True)
    shared = np.zeros((len(window), subflows, subflows), np.bool_)
    shared[at, meant.pair[:, 0], meant.pair[:, 1]] = classes == 1
    return window, components(shared)


@dataclass(frozen=True)
class PairFeed:
    """A compiled companion; see :class:`export.companions.feed.Feed`."""

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

    def run(self, connections: Sequence[tuple[Calls, int]], timeout_s: float) -> list[PairAnswer]:
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

    def _answer(self, rows: Ints) -> PairAnswer:
        pairs, whole = rows[rows[:, 2] >= 0], rows[rows[:, 2] < 0]
        x = pairs[:, HEAD : HEAD + self.features]
        fixed = FixedPairs(pairs[:, 1], pairs[:, 2:4], x)
        group = whole[:, HEAD : HEAD + self.subflows]
        return PairAnswer(fixed, pairs[:, 4], whole[:, 1], group, whole[:, 3])

    def nanoseconds(
        self, connection: tuple[Calls, int], rounds: int, timeout_s: float
    ) -> tuple[float, float, float]:
        """Per call, per ``sbd_pair_classify`` and per ``sbd_partition``: the shortest."""
        _, said = self._driver([connection], rounds, timeout_s)
        each, classified, parted = map(float, said.split()[1:])
        return each, classified, parted

    @property
    def _columns(self) -> int:
        return HEAD + max(self.features, self.subflows)

    def _driver(
        self, connections: Sequence[tuple[Calls, int]], rounds: int, timeout_s: float
    ) -> tuple[bytes, str]:
        arguments = (self.features, self._columns, rounds)
        return run_driver(self.executable, arguments, connections, timeout_s)


def build_pair_feed(
    bundle: Path,
    identifier: str,
    work: Path,
    timeout_s: float,
    *,
    features: Sequence[Feature],
    subflows: int,
    flags: list[str] | None = None,
) -> PairFeed:
    """Compile a bundle's companion of ``subflows`` subflows with its driver.

    Parameters and errors are those of :func:`export.companions.feed.build_feed`.
    """
    unit = _UNIT.format(identifier=identifier, ack=ack_statement(features))
    made_of = (bundle, identifier, work, timeout_s)
    made = compile_unit(*made_of, unit, "sbd_partition_driver.c", flags)
    return PairFeed(*made, features=len(features), subflows=subflows)
