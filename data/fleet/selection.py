"""A selection of a store's rows is named by those who learn from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

KEY = "cczoo.selection"
"""Key of a Parquet file's metadata: the store and the condition that its rows come from."""


@dataclass(frozen=True)
class Selection:
    """Rows of a store that a table holds.

    Attributes
    ----------
    store, id : str
        The store's address, and the name that no other store has.
    version : int
        Version of the store.
    where : str
        The condition; empty for all rows.
    fingerprint : str
        Hash of what was selected, the same wherever and whenever it is selected.
    """

    store: str
    id: str
    version: int
    where: str
    fingerprint: str

    def text(self) -> str:
        """The selection as JSON."""
        return json.dumps(asdict(self))

    def plain(self) -> dict[str, str]:
        """The selection as texts, as a run of MLflow has it."""
        return {name: str(value) for name, value in asdict(self).items()}


def selection_of(path: Path) -> Selection | None:
    """The selection that a table was made of, if it comes from a store."""
    import polars as pl

    if not path.is_file():
        return None
    text = pl.read_parquet_metadata(path).get(KEY)
    return None if text is None else Selection(**json.loads(text))
