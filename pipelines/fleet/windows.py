"""Features of windows that follow a store: the tables ``sbd`` and ``series``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from features.params import SbdParams
from models.sbd.computed_with import recorded
from pipelines import feature_rows
from pipelines.fleet.kinds import Computed, Connections

CONNECTION = "connection"
ROWS = 4096
"""Rows that are in memory at once, and more where a connection has more."""


@dataclass(frozen=True)
class Windows:
    """A table of `features.sbd.TABLES` with some settings; see `pipelines.fleet.kinds.Kind`."""

    table: str
    params: SbdParams

    @property
    def key(self) -> str:
        """Column with the name of the connection."""
        return CONNECTION

    @property
    def words(self) -> str:
        """What comes after ``cczoo features``."""
        return self.table

    def recorded(self) -> Mapping[str, str]:
        """Settings of windows, and the families' schema hashes."""
        return recorded(self.table, self.params)

    metadata = recorded

    def schema(self) -> Any:
        """Fixed columns and features, with types that every reader of Delta knows."""
        import pyarrow as pa

        kinds = {str: pa.string(), int: pa.int64()}
        names = feature_rows.feature_names(self.table)
        return pa.schema(
            [
                *(pa.field(name, kinds[kind]) for name, kind in feature_rows.FIXED.items()),
                *(pa.field(name, pa.float64()) for name in names),
            ]
        )

    def kept(self, labels: Sequence[str], others: Sequence[str], store: str) -> list[str]:
        """All of them; labels with the names of features are refused."""
        names = feature_rows.feature_names(self.table)
        feature_rows.check_attributes([*labels, *others], names, store)
        return list(others)

    def compute(
        self, connections: Connections, attributes: Sequence[str], add: Callable[[Any], None]
    ) -> Computed:
        """Compute windows, a batch of connections at a time."""
        names = feature_rows.feature_names(self.table)
        none = pl.DataFrame(schema=dict.fromkeys([CONNECTION, *attributes], pl.String))
        found = Computed()
        # The first piece has no rows, so that a file without windows is one nevertheless.
        held: list[Any] = [([], np.empty((0, len(names))), none)]
        for batch in feature_rows.in_batches(connections):
            heads, values, reasons = feature_rows.compute_batch(batch, self.params, self.table)
            own = pl.DataFrame(
                [{name: row.get(name) for name in none.columns} for row, _ in batch],
                schema=none.schema,
            )
            held.append((heads, values, own))
            found.reasons.update(reasons)
            if sum(len(one[0]) for one in held) >= ROWS:
                found.rows += _write(held, names, add)
                held = []
        if held:
            found.rows += _write(held, names, add)
        return found


def _write(held: list[Any], names: list[str], add: Callable[[Any], None]) -> int:
    heads = [head for one in held for head in one[0]]
    values = np.concatenate([one[1] for one in held])
    frame = feature_rows.joined(heads, values, names, pl.concat([one[2] for one in held]))
    add(_arrow(frame))
    return len(frame)


def _arrow(frame: pl.DataFrame) -> Any:
    import pyarrow as pa
    from polars.interchange import CompatLevel

    found = frame.to_arrow(compat_level=CompatLevel.oldest())
    kinds = [
        pa.string() if pa.types.is_large_string(column.type) else column.type
        for column in found.schema
    ]
    return found.cast(pa.schema(list(zip(found.column_names, kinds, strict=True))))
