"""Rule-based shared-bottleneck detection: schemes that the learned models are compared with.

Each module judges windows of one connection: ``judge(pair, windows) -> shares``. ``shares``, a
float64 array [n, 2], has the share of each window's time in which the scheme takes the subflows to
share a bottleneck (column 0) and not to share one (column 1), as section 5.1 of the paper counts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import unknown_name
from models.parallel import Progress, silent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from models.sbd.rules.pair import Pair
    from models.sbd.windows import Windows

    Judge = Callable[[Pair, NDArray[np.int64]], NDArray[np.float64]]

RULES: dict[str, str] = {
    "dwc": "models.sbd.rules.dwc",
    "sbd": "models.sbd.rules.rfc8382",
    "ton20": "models.sbd.rules.ton20",
}
"""Scheme -> module. The threshold baseline learns its threshold and is a classifier."""


def judge_of(name: str) -> Judge:
    """The scheme's function.

    Raises
    ------
    UserError
        When no scheme has this name.
    """
    if name not in RULES:
        raise unknown_name("rule-based scheme", name, RULES)
    judge: Judge = importlib.import_module(RULES[name]).judge
    return judge


def run(
    events: Path, table: Windows, names: Sequence[str], progress: Progress = silent
) -> dict[str, NDArray[np.float64]]:
    """Judge all windows of a table by their connections' events.

    Parameters
    ----------
    events : Path
        Ingested directory.
    table : Windows
        N rows with ``start_us`` and ``end_us``.
    names : sequence of str
        Keys of `RULES`.
    progress : callable
        Shows the progress; see `models.parallel.Progress`.

    Returns
    -------
    dict
        scheme -> shares, float64 array [N, 2]; NaN if the events lack the connection.
    """
    import numpy as np
    import polars as pl

    from data.store import iter_connections
    from models.sbd.rules.pair import pair

    judges = {name: judge_of(name) for name in names}
    shares = {name: np.full((len(table), 2), np.nan) for name in names}
    spans = table.frame.select(pl.col("start_us", "end_us").cast(pl.Int64)).to_numpy()
    pairs = [name for name in ("subflow_a", "subflow_b") if name in table.frame.columns]
    rows: dict[str, dict[tuple[int, ...], list[int]]] = {}
    for i, (name, *both) in enumerate(table.frame.select("connection", *pairs).iter_rows()):
        rows.setdefault(str(name), {}).setdefault((*both,), []).append(i)
    found = iter_connections(events, set(rows))
    for row, series in progress(found, "rule-based schemes", len(rows)):
        for of, index in rows[row["connection"]].items():
            two = pair({k: v for k, v in series.items() if k in of} if of else series)
            if two is None:
                continue
            for name, judge in judges.items():
                shares[name][index] = judge(two, spans[index])
    return shares
