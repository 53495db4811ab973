"""Simulate the lab's runs again, and compare both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import progress

if TYPE_CHECKING:
    from arro3.core import RecordBatch

Record = dict[str, Any]
Pair = tuple[dict[str, Any], dict[str, Any]]

FIGURES = ("goodput_mbps", "rtt_ms", "rtt_p95_ms", "retransmits")
PERCENTILES = (10, 50, 90)
ROUNDS = 2000
BAND = 0.05
CAMPAIGN_LOG = "campaign.jsonl"


def campaign_records(raw: Path, campaigns: Iterable[str], every: int) -> list[Record]:
    """Every N-th of the valid runs of campaigns whose logs are there.

    Raises
    ------
    UserError
        When there is no such campaign, or `every` is below 1.
    """
    from data.errors import UserError

    if every < 1:
        raise UserError(f"--every {every}: give a whole number of at least 1")
    found = []
    for campaign in campaigns:
        rows = _rows(raw / campaign / CAMPAIGN_LOG, "--raw")
        kept = {p.name.split(".")[0] for p in (raw / campaign).glob("*/*.klog.zst")}
        found += [row for row in rows if row["valid"] and row["id"] in kept]
    return found[::every]


def reference_records(reference: Path) -> list[Record]:
    """Valid runs of the comparison's own campaign, with their measured figures.

    Raises
    ------
    UserError
        When the campaign isn't there, or is without figures.
    """
    from data.errors import UserError

    path = reference / CAMPAIGN_LOG
    rows = [row for row in _rows(path, "--reference") if row["valid"]]
    if not rows or any(not row.get("figures") for row in rows):
        raise UserError(f"{path}: no figures in it: collect again with `cczoo lab collect linux`")
    return rows


def _rows(path: Path, option: str) -> list[Record]:
    from data.errors import UserError

    if not path.is_file():
        raise UserError(f"{path}: not there: give the directory of the campaigns with {option}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def simulated(record: Record, seed: int | None = None) -> tuple[RecordBatch, list[dict[str, Any]]]:
    """Events and row of one run's connection, as `data.netsim.events.tables` has them.

    Parameters
    ----------
    record : dict
        A record of ``campaign.jsonl``.
    seed : int, optional
        Seed of the simulator; by default the run's own.
    """
    from data.lab.scenario import Scenario
    from data.netsim import from_lab
    from data.netsim.events import tables
    from data.netsim.network import Network

    spec = from_lab.scenario_of(record)
    network = Network(spec, seed=int(record["seed"]) if seed is None else seed, log=True)
    network.advance(spec.duration_s)
    attributes = {key: str(record[key]) for key in ("label", "dataset", "family", "case")}
    order = from_lab.order_of(Scenario.model_validate(record["scenario"]))
    wifi = {"wifi_sport": str(order.index("wifi") + 1)}
    table, rows = tables(network, str(record["id"]), attributes | wifi)
    # The connection is the scenario's first flow; the subflows' numbers stand for ports.
    row = rows[0]
    for subflow in row["subflows"]:
        subflow["sport"] = subflow["subflow"]
    # Its events come first.
    return table.slice(0, sum(subflow["events"] for subflow in row["subflows"])), [row]


def simulate_all(records: list[Record], out: Path, jobs: int) -> None:
    """Simulate campaign records; their connections become an ingested directory.

    Parameters
    ----------
    records : list of dict
        Records of ``campaign.jsonl``.
    out : Path
        Directory to make; an earlier one is replaced, if it holds nothing else.
    jobs : int
        Number of threads; the simulator holds no lock.
    """
    from data.netsim import events
    from data.place import building
    from data.store import own_files

    with building(out, own_files, "this command") as fresh:
        events.write(_side_by_side(simulated, records, jobs, "simulating the campaigns"), fresh)


def _side_by_side(
    work: Callable[[Record], Any], records: list[Record], jobs: int, what: str
) -> Iterable[Any]:
    simulated(records[0])  # compiles, once, before there are threads
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        yield from progress(pool.map(work, records), what, len(records))


def figures_of(directory: Path, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Figures of an ingested directory's connections, by run; see `data.lab.figures`."""
    from data.lab import figures
    from data.store import iter_connections

    found = {}
    for row, series in iter_connections(directory):
        name = row["source"].split("/")[-1].split(".")[0]
        if name in wanted and (figure := figures.of(series)):
            found[name] = figure
    return found


def simulated_figures(records: list[Record], seeds: int, jobs: int) -> dict[str, dict[str, Any]]:
    """Figures of each record's connection in the simulator, by run: means over seeds."""
    from data.lab import figures

    def one(record: Record) -> dict[str, Any]:
        tables = [simulated(record, int(record["seed"]) + i)[0] for i in range(seeds)]
        runs = [figures.of(_series(table)) for table in tables]
        return {key: sum(run[key] for run in runs) / seeds for key in (*FIGURES, "bursts")}

    found = _side_by_side(one, records, jobs, "simulating the reference runs")
    return {record["id"]: figure for record, figure in zip(records, found, strict=True)}


def _series(table: RecordBatch) -> Any:
    import polars as pl

    frame = pl.DataFrame(table).with_columns(pl.col("variable").cast(pl.String))
    series: dict[int, dict[str, Any]] = {}
    for (number, name), part in frame.group_by("subflow", "variable", maintain_order=True):
        columns = part["time_us"].to_numpy(), part["value"].to_numpy()
        series.setdefault(int(str(number)), {})[str(name)] = columns
    return series


def compare(pairs: list[Pair], seed: int) -> dict[str, Any]:
    """Compare the simulator's figures with the kernel's.

    Parameters
    ----------
    pairs : list of (dict, dict)
        Figures of the kernel's and of the simulator's run of each record.
    seed : int
        Seed of the resampling.

    Returns
    -------
    dict
        Per figure: ``kernel`` and ``netsim`` (means over runs), ``ratio`` of the means with
        ``lo`` and ``hi`` (95 %, bootstrap over runs), ``runs`` (10th, 50th and 90th percentile
        of single runs' ratios), ``within`` (5 %) and ``beyond``: the interval excludes 5 %.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(pairs), (ROUNDS, len(pairs)))
    found: dict[str, Any] = {}
    for key in FIGURES:
        kernel, netsim = (np.array([pair[side][key] for pair in pairs], float) for side in (0, 1))
        sums = kernel[drawn].sum(axis=1), netsim[drawn].sum(axis=1)
        ratio = float(netsim.sum() / max(kernel.sum(), 1e-9))
        low, high = np.percentile(sums[1] / np.maximum(sums[0], 1e-9), (2.5, 97.5))
        single = netsim[kernel > 0] / kernel[kernel > 0]
        found[key] = {
            "kernel": float(kernel.mean()),
            "netsim": float(netsim.mean()),
            "ratio": ratio,
            "lo": float(low),
            "hi": float(high),
            "runs": [float(p) for p in np.percentile(single, PERCENTILES)] if len(single) else None,
            "within": abs(ratio - 1) <= BAND,
            "beyond": bool(low > 1 + BAND or high < 1 - BAND),
        }
    return found


def by_group(
    records: list[Record],
    kernel: dict[str, dict[str, Any]],
    netsim: dict[str, dict[str, Any]],
    keys: tuple[str, ...],
    seed: int,
) -> list[dict[str, Any]]:
    """`compare` for each group of records that agree in `keys`, in order of first appearance."""
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for record in records:
        if record["id"] in kernel and record["id"] in netsim:
            group = tuple(str(record[key]) for key in keys)
            pair = kernel[record["id"]], netsim[record["id"]]
            groups.setdefault(group, []).append(pair)
    return [
        {**dict(zip(keys, group, strict=True)), "count": len(pairs), **compare(pairs, seed)}
        for group, pairs in groups.items()
    ]
