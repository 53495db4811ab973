"""Rows of features: one for each window of a connection and pair of its subflows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from features.params import SbdParams

KEPT_ATTRIBUTES = ("dataset", "kernel", "cc")
"""Fixed columns of ``connections.parquet`` that go before the labels file's own."""

VARIABLES_USED = ("rtt_us", "srtt_us", "ca_state", "ack", "retransmit", "throughput_bps")
BATCH = 16
"""Number of connections that a worker gets at a time, enough pairs to fill the SIMD lanes."""

Connection = tuple[dict[str, Any], dict[int, dict[str, Any]]]


def featurize(
    events: Path, params: SbdParams, jobs: int, what: str = "sbd"
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Compute the table of an ingested directory.

    Parameters
    ----------
    events : Path
        Directory made by ``cczoo ingest``.
    params : SbdParams
        Window settings.
    jobs : int
        Number of processes.
    what : str
        Kind of table, a key of `features.sbd.TABLES`.

    Returns
    -------
    table : polars.DataFrame
        One row per window and pair of subflows, sorted by source, connection, window and pair.
    counts : dict
        ``windows``, ``connections``, ``connections_without_window`` {count, reasons}.
    """
    import numpy as np
    import polars as pl

    from data.schema import CONNECTIONS
    from data.store import read_connections

    connections = read_connections(events)
    attributes = [
        *KEPT_ATTRIBUTES,
        *(name for name in connections.columns if name not in CONNECTIONS.names),
    ]
    names = feature_names(what)
    check_attributes(attributes, names, str(events))
    heads: list[tuple[Any, ...]] = []
    blocks = []
    reasons: Counter[str] = Counter()
    seen = 0
    for head, block, failed in _results(events, params, jobs, connections, what):
        heads += head
        blocks.append(block)
        reasons.update(failed)
        seen += len({row[1] for row in head}) + len(failed)
    if connections.height > seen:
        reasons["no events"] = connections.height - seen
    values = np.concatenate(blocks) if blocks else np.empty((0, len(names)))
    own = connections.select("connection", *(pl.col(name).cast(pl.String) for name in attributes))
    table = joined(heads, values, names, own)
    without = {"count": sum(reasons.values()), "reasons": dict(sorted(reasons.items()))}
    return table, {
        "windows": table.height,
        "connections": connections.height,
        "connections_without_window": without,
    }


def feature_names(what: str) -> list[str]:
    """Names of the features of a table, in the order of its columns."""
    from features.sbd import TABLES, features_of

    return [feature.name for family in TABLES[what] for feature in features_of(family)]


def check_attributes(attributes: Iterable[str], names: Iterable[str], where: str) -> None:
    """Refuse columns of a labels file that have the name of another column."""
    if clash := sorted(set(attributes) & {*names, *FIXED}):
        raise UserError(f"{where}: the labels' column {clash[0]!r} has a feature's name: rename it")


def joined(
    heads: list[tuple[Any, ...]], values: Any, names: list[str], own: pl.DataFrame
) -> pl.DataFrame:
    """Put the rows of a table together.

    Parameters
    ----------
    heads : list of tuple
        Fixed columns of N windows.
    values : float64 array [N, d]
        Their features.
    names : list of str
        Names of the d features.
    own : polars.DataFrame
        Attributes by ``connection``.
    """
    import polars as pl

    fixed = pl.DataFrame(heads, schema=FIXED, orient="row")
    features = pl.DataFrame(values, schema=dict.fromkeys(names, pl.Float64), orient="row")
    return (
        pl.concat([fixed, features], how="horizontal")
        .join(own, on="connection", how="left", maintain_order="left")
        .sort("source", "connection", "window", "subflow_a", "subflow_b")
    )


FIXED: dict[str, Any] = {
    "source": str,
    "connection": str,
    "window": int,
    "label": str,
    "start_us": int,
    "end_us": int,
    "rtt_kind": str,
    "subflow_a": int,
    "subflow_b": int,
}

Result = tuple[list[tuple[Any, ...]], Any, list[str]]


def write(table: pl.DataFrame, path: Path, params: SbdParams, what: str = "sbd") -> None:
    """Write the table under a temporary name, then rename; settings and hashes go along."""
    from data.files import write_file
    from models.sbd.computed_with import recorded

    metadata = recorded(what, params)
    write_file(path, lambda part: table.write_parquet(part, compression="zstd", metadata=metadata))


def compute_batch(batch: list[Connection], params: SbdParams, what: str = "sbd") -> Result:
    """Compute windows and features of some connections: the work of a worker process.

    Returns
    -------
    heads : list of tuple
        Fixed columns of each window.
    values : float64 array [N, d]
        Features of the N windows, the table's families side by side.
    reasons : list of str
        A reason for each connection without a window.
    """
    import numpy as np

    from data.labels import pair_label
    from features import sbd
    from features.pairs import pair_windows

    heads: list[tuple[Any, ...]] = []
    found = []
    reasons = []
    for row, events in batch:
        own, reason = pair_windows(row, events, params)
        if reason:
            reasons.append(reason)
        for pair, window in own:
            key = (row["source"], row["connection"], window.index, pair_label(row, pair))
            heads.append((*key, window.start_us, window.end_us, window.rtt_kind, *pair))
            found.append(window)
    values = np.concatenate([sbd.compute(family, found) for family in sbd.TABLES[what]], axis=1)
    return heads, values, reasons


def _weight(connection: Connection) -> int:
    return sum(about.get("events", 0) for about in connection[0]["subflows"])


def _results(
    events: Path, params: SbdParams, jobs: int, connections: pl.DataFrame, what: str
) -> Iterator[Result]:
    """Results in the order of the directory, whatever the number of processes."""
    from data.store import iter_connections
    from pipelines.output import progress

    total = connections.height
    weight = sum(_weight((row, {})) for row in connections.iter_rows(named=True))

    # Connections are as much work as they have events.
    batches = in_batches(progress(iter_connections(events), "features", weight, _weight))
    if jobs == 1 or total <= BATCH:
        for batch in batches:
            yield compute_batch(batch, params, what)
        return
    import multiprocessing

    # Not fork: Arrow's threads may hold locks that a forked child would wait for forever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting: list[Future[Result]] = []
        for batch in batches:
            waiting.append(pool.submit(compute_batch, batch, params, what))
            if len(waiting) >= 2 * jobs:  # reading must not run away from computing
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def in_batches(connections: Iterable[Connection]) -> Iterator[list[Connection]]:
    """Put connections together by the number that a worker gets, with the variables it needs."""
    iterator = iter(connections)
    while taken := list(islice(iterator, BATCH)):
        yield [
            (
                row,
                {
                    subflow: {
                        name: (times.copy(), values.copy())
                        for name, (times, values) in variables.items()
                        if name in VARIABLES_USED
                    }
                    for subflow, variables in events.items()
                },
            )
            for row, events in taken
        ]
