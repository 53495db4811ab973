"""Decisions are written and read run by run, so that a large set takes no more memory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from arro3.core import RecordBatchReader
from arro3.io import write_parquet
from pydantic import ValidationError

from data.decisions.run import Run
from data.decisions.schema import KEY, About
from data.errors import UserError
from data.files import write_file
from data.parquet import COMPRESSION

GROUP_ROWS = 1 << 17
"""Rows of a row group: what a reader holds at a time."""
_RUN = ("run", "behaviour", "scenario")


def write(path: Path, about: About, runs: Iterable[Run]) -> int:
    """Write a file whole or not at all; returns how many rows it has.

    Parameters
    ----------
    path : Path
        Parquet file to make.
    about : About
    runs : iterable of Run
        Taken one by one, and written in the order in which they come.
    """
    content, count = as_bytes(about, runs)
    keep(path, content)
    return count


def keep(path: Path, content: bytes) -> None:
    """Write a file's content whole or not at all."""
    write_file(path, lambda part: part.write_bytes(content))


def as_bytes(about: About, runs: Iterable[Run]) -> tuple[bytes, int]:
    """A file's content, and how many rows it has; the same runs give the same bytes.

    What is compressed already is in memory until the file is whole.
    """
    schema, count = about.columns(), 0
    failed: list[Exception] = []

    def batches() -> Iterator[Any]:
        nonlocal count
        try:
            for run in runs:
                count += run.rows
                yield run.batch(schema)
        except Exception as error:
            # The library would pass on its text alone.
            failed.append(error)
            raise

    content = io.BytesIO()
    try:
        write_parquet(
            RecordBatchReader.from_batches(schema, batches()),
            content,
            compression=COMPRESSION,
            max_row_group_size=GROUP_ROWS,
            key_value_metadata={KEY: about.model_dump_json()},
        )
    except Exception as error:
        raise failed[0] if failed else error from None
    return content.getvalue(), count


def files(path: Path) -> list[Path]:
    """The Parquet files of a data set: of one file, or of a folder and what lies below it.

    Raises
    ------
    UserError
        If there is none.
    """
    found = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not found:
        raise UserError(f"{path}: no Parquet file of decisions there")
    return found


def split(path: Path) -> str:
    """The split that a file of a partitioned data set is in: train, validation or test, or none."""
    name = "split="
    return next((one.removeprefix(name) for one in path.parts if one.startswith(name)), "")


def about(path: Path) -> About:
    """What a data set says of itself; of a folder, what its first file says.

    Raises
    ------
    UserError
        If it holds no decisions.
    """
    file = files(path)[0]
    try:
        return About.model_validate_json(pl.read_parquet_metadata(file)[KEY])
    except (KeyError, OSError, ValidationError, pl.exceptions.PolarsError):
        raise UserError(
            f"{file}: holds no decisions: make them by cczoo features decisions"
        ) from None


def runs(path: Path) -> Iterator[Run]:
    """The runs of a data set, one after another; only some of them are in memory at a time.

    Raises
    ------
    UserError
        If a file holds no decisions, or decisions of another observation than the first one.
    """
    first = about(path)
    for file in files(path):
        mine = about(file)
        if (mine.agent, mine.schema_hash) != (first.agent, first.schema_hash):
            raise UserError(f"{file}: its observations aren't those of {files(path)[0]}")
        yield from _of_file(file, list(mine.observation))


def _of_file(file: Path, names: list[str]) -> Iterator[Run]:
    """Runs of a file, from one row group after another."""
    rest: pl.DataFrame | None = None
    # Whatever a reader asks for besides, the groups are read one at a time.
    total, at = pl.scan_parquet(file).select(pl.len()).collect().item(), 0
    while at < total:
        part = pl.scan_parquet(file, hive_partitioning=False).slice(at, GROUP_ROWS).collect()
        at += GROUP_ROWS
        part = part if rest is None else pl.concat([rest, part], rechunk=True)
        starts = np.flatnonzero(part["first"].to_numpy() & (part["subflow"].to_numpy() == 0))
        bounds = [*starts.tolist(), part.height]
        # The last one may go on in the next group.
        whole = len(starts) - (at < total)
        for begin, end in pairwise(bounds[: whole + 1]):
            yield _run(part[begin:end], names)
        rest = part[bounds[whole] :] if at < total else None


def _run(rows: pl.DataFrame, names: list[str]) -> Run:
    head = rows.row(0, named=True)
    shape = (-1, int(head["subflows"]))
    observed = rows.select(names).to_numpy(order="c").astype(np.float32)
    name, behaviour, scenario = (str(head[key]) for key in _RUN)
    return Run(
        name,
        behaviour,
        scenario,
        observed.reshape(*shape, len(names)),
        rows["action"].to_numpy().reshape(shape),
        rows["change"].to_numpy().reshape(shape),
        rows["reward"].to_numpy().reshape(shape),
        bool(rows["last"][-1]),
        bool(rows["truncated"][-1]),
    )
