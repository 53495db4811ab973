"""Some rows of a store's features become one Parquet file, which says what it was selected from."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import UserError
from data.fleet import select
from data.fleet.address import whole
from data.fleet.files import groups, metadata_of
from data.fleet.layout import INTAKE
from data.fleet.selection import KEY, Selection
from data.fleet.table import File, Table
from data.fleet.where import Where
from features.params import SbdParams
from pipelines.fleet.follow import SETTINGS, current_files
from pipelines.fleet.kinds import settings_hash
from pipelines.fleet.windows import Windows

LEFT_OUT = (SETTINGS, INTAKE)
"""Columns of a store's features that a table hasn't."""


def write(
    store: str, what: str, where: str | None, params: SbdParams | None, path: Path
) -> dict[str, Any]:
    """Write the rows for which a condition holds.

    Parameters
    ----------
    store : str
        Address.
    what : str
        Kind of table.
    where : str, optional
        The condition.
    params : SbdParams, optional
        Settings of the features; needed only where the store has features of several.
    path : Path
        File to write.

    Returns
    -------
    dict
        Name, version, condition and fingerprint of what was selected, which the file's metadata
        hold too.

    Raises
    ------
    UserError
        When no row fits, or it isn't clear which settings are meant.
    """
    table, files = opened(store, what, what)
    own, condition = _settings(store, what, files, params), Where(where)
    condition.check(name for name in table.columns if name not in LEFT_OUT)
    chosen = condition.files([file for file in files if file.values[SETTINGS] == own])
    seen: Counter[str] = Counter()
    schema = _schema(table)
    metadata = metadata_of(table.address, chosen[0]) if chosen else {}
    metadata = {key: value for key, value in metadata.items() if key.startswith("cczoo.")}
    with pq.ParquetWriter(path, schema.with_metadata(metadata), compression="zstd") as writer:
        for file in sorted(chosen, key=lambda file: (str(file.partition), file.path)):
            for rows in groups(table.address, file):
                frame = select.with_partition(rows, file, [*schema.names, *condition.columns])
                frame = frame.filter(condition.mask(frame))
                seen.update(frame[INTAKE].to_list())
                if len(frame):
                    writer.write_table(frame.select(schema.names).to_arrow().cast(schema))
        selection = named(store, where, own, seen)
        writer.add_key_value_metadata({KEY: selection.text()})
    if not seen:
        raise UserError(f"{store}: no row of its features fits --where {where or ''!r}")
    return {"selection": selection, "rows": sum(seen.values())}


def opened(store: str, name: str, words: str) -> tuple[Table, list[File]]:
    """A table of features and its files of present connections; says how many have none yet."""
    table, files, lacking = current_files(store, name, words)
    if lacking:
        print(
            f"{store}: {lacking} files of connections have no {name} yet: run "
            f"`cczoo features {words} --store {store}` for them",
            file=sys.stderr,
        )
    return table, files


def named(store: str, where: str | None, settings: str, seen: Counter[str]) -> Selection:
    """What was selected, by the number of rows of each intake and the hash of their settings."""
    digest = hashlib.sha256(settings.encode())
    for intake, number in sorted(seen.items()):
        digest.update(f"\n{intake} {number}".encode())
    logs = select.open_logs(store)
    return Selection(whole(store), logs.id, logs.version, where or "", digest.hexdigest())


def _settings(store: str, what: str, files: list[File], params: SbdParams | None) -> str:
    there = sorted({str(file.values[SETTINGS]) for file in files})
    if params is not None and (own := settings_hash(Windows(what, params))) in there:
        return own
    if len(there) == 1 and params is None:
        return there[0]
    default = settings_hash(Windows(what, SbdParams()))
    if params is None and default in there:
        return default
    raise UserError(
        f"{store}: has no features with these settings: compute them with `cczoo features {what} "
        f"--store {store}` and the same --params or --model"
    )


def _schema(table: Table) -> Any:
    from pipelines import feature_rows

    names = feature_rows.feature_names(table.address.rpartition("/")[2])
    kinds = {str: pa.string(), int: pa.int64()}
    fields = {name: pa.field(name, kinds[kind]) for name, kind in feature_rows.FIXED.items()}
    fields |= {name: pa.field(name, pa.float64()) for name in names}
    for name in table.columns:
        if name not in fields and name not in LEFT_OUT:
            fields[name] = pa.field(name, pa.string())
    return pa.schema(list(fields.values()))
