"""Tables that follow a store are of several kinds, each with its own way to compute rows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

NAMED = 1000
"""Refused connections that a run names; the others it counts."""
Connections = Iterator[tuple[dict[str, Any], Any]]
"""Rows of connections with their events, as from `data.fleet.select.connections`."""


@dataclass
class Computed:
    """Counts of what was computed, and which connections have none of it."""

    rows: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    """Rows by what a kind tells apart."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why connections have none -> how many."""
    refused: list[dict[str, str]] = field(default_factory=list)
    """Names of the first `NAMED` of them, and why."""

    def add(self, other: Computed) -> None:
        """Count what another task has computed too."""
        self.rows += other.rows
        self.sums += other.sums
        self.reasons += other.reasons
        self.refused += other.refused[: NAMED - len(self.refused)]


class Kind(Protocol):
    """One kind of table; it travels to the processes that compute."""

    @property
    def table(self) -> str:
        """Folder of the table in the store, a key of `pipelines.fleet.tables.KEYS`."""

    @property
    def key(self) -> str:
        """Its column with the name of the connection."""

    @property
    def words(self) -> str:
        """What it is called after ``cczoo features``."""

    def recorded(self) -> Mapping[str, Any]:
        """All that the rows depend on: settings, and definitions of the columns."""

    def metadata(self) -> Mapping[str, str]:
        """What each file says of itself."""

    def schema(self) -> Any:
        """Arrow schema of its own columns, without attributes of connections."""

    def kept(self, labels: Sequence[str], others: Sequence[str], store: str) -> list[str]:
        """Which of the other attributes the table takes; refuses labels that part the store.

        They clash where they have the name of a column of its own.
        """

    def compute(
        self, connections: Connections, attributes: Sequence[str], add: Callable[[Any], None]
    ) -> Computed:
        """Give the rows of connections, with these attributes, to ``add`` as Arrow tables.

        It is called at least once, so that a file without rows is one nevertheless.
        """


def settings_hash(kind: Kind) -> str:
    """Hash of whatever the rows of a table depend on."""
    text = json.dumps(kind.recorded(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
