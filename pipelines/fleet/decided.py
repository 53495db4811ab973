"""Some decisions of a store become files of decisions, for as long as a training learns from them.

``--decisions`` names a store, or the table of decisions in it; what it selects is copied a group of
rows at a time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.decisions.schema import HEAD, KEY, TAIL, About
from data.errors import UserError
from data.fleet import select
from data.fleet.address import address, is_url
from data.fleet.files import groups, metadata_of
from data.fleet.layout import INTAKE, LOGS
from data.fleet.selection import Selection
from data.fleet.table import File
from data.fleet.where import Where
from models.decisions import source
from pipelines.fleet.decisions import DECISIONS, Decisions
from pipelines.fleet.follow import SETTINGS
from pipelines.fleet.kinds import settings_hash
from pipelines.fleet.selected import named, opened

OF_RUNS = ("run", "subflows", "behaviour", "scenario")
"""Columns of decisions that a condition may be about: the same in all rows of a run."""
ALSO = {"connection": "run", "source": "scenario"}
"""Names that a condition may use for columns of decisions, as for those of logs."""


def store_of(given: str) -> str | None:
    """The store that ``--decisions`` names by itself or by a table in it; none if it's files."""
    place = address(given).rstrip("/")
    parent, _, name = place.rpartition("/")
    store = (parent or ".") if name.startswith(DECISIONS) else place
    if is_url(store):
        return store
    return store if (Path(store) / LOGS / "_delta_log").is_dir() else None


@contextmanager
def chosen(given: str, agent: str, where: str | None) -> Iterator[tuple[Path, Selection | None]]:
    """The files that ``--decisions`` and ``--where`` mean, and what of a store they hold.

    Raises
    ------
    UserError
        When nothing fits, or a condition is given without a store.
    """
    from data.place import scratch

    store = store_of(given)
    if store is None:
        if where is not None:
            raise UserError(f"--where: goes with a store, and {given} is none")
        yield Path(address(given)), None
        return
    with scratch("decisions") as folder:
        yield folder, write(store, agent, where, folder)


def write(store: str, agent: str, where: str | None, folder: Path) -> Selection:
    """Copy the decisions for whose runs a condition holds, a file for each file of the store.

    Raises
    ------
    UserError
        When there are none, or it isn't clear which settings are meant.
    """
    words = f"decisions {agent}"
    table, files = opened(store, f"{DECISIONS}{agent}", words)
    condition = Where(where)
    own = {column.name for column in (*HEAD, *TAIL)} | set(_about(table.address, files).observation)
    known = [name for name in table.columns if name not in own and name != INTAKE]
    condition.check([*known, *OF_RUNS, *ALSO])
    fitting = condition.files(files)
    settings = _settings(store, agent, table.address, fitting)
    seen: Counter[str] = Counter()
    for number, file in enumerate(fitting):
        if file.values[SETTINGS] == settings:
            seen += _copy(table.address, file, condition, folder / f"{number:06d}.parquet")
    if not seen:
        raise UserError(f"{store}: no decision fits --where {where or ''!r}")
    return named(store, where, settings, seen)


def _about(place: str, files: Sequence[File]) -> About:
    if not files:
        raise UserError(f"{place}: holds no decisions of the store's present connections")
    return About.model_validate_json(metadata_of(place, files[0])[KEY])


def _copy(place: str, file: File, condition: Where, path: Path) -> Counter[str]:
    """Copy rows of a file; counts them by their intakes."""
    about = metadata_of(place, file)[KEY]
    schema = pa.schema(About.model_validate_json(about).columns()).with_metadata({KEY: about})
    seen: Counter[str] = Counter()
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        for rows in groups(place, file):
            for name, column in ALSO.items():
                if name in condition.columns:
                    rows = rows.append_column(name, rows[column])
            frame = select.with_partition(rows, file, condition.columns)
            frame = frame.filter(condition.mask(frame))
            seen.update(frame[INTAKE].to_list())
            if len(frame):
                writer.write_table(frame.select(schema.names).to_arrow().cast(schema))
    if not seen:
        path.unlink()
    return seen


def _settings(store: str, agent: str, place: str, files: Sequence[File]) -> str:
    """Hash of the only settings there are, or else of the default ones."""
    there = {str(file.values[SETTINGS]): file for file in files}
    if len(there) == 1:
        return next(iter(there))
    own = settings_hash(Decisions(agent, source(agent).settings()))
    if own in there or not there:
        return own
    choices = "; ".join(
        f"settings = '{name}': {_differing(place, file, agent)}" for name, file in there.items()
    )
    raise UserError(f"{store}: has decisions of several settings: name one in --where: {choices}")


def _differing(place: str, file: File, agent: str) -> str:
    """Settings of a file that aren't the default ones."""
    default = source(agent).about(source(agent).settings()).params
    found = About.model_validate_json(metadata_of(place, file)[KEY]).params
    return json.dumps(_other(found, default), sort_keys=True)


def _other(one: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _other(value, base[name]) if isinstance(value, dict) and name in base else value
        for name, value in one.items()
        if name not in base or value != base[name]
    }
