"""Find groups of path conditions in ingested connections, or assign connections to such groups."""

from __future__ import annotations

import argparse
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.files import write_file, write_text
from pipelines import selection

if TYPE_CHECKING:
    import polars as pl

    from models.sbd.conditions.clusters import Clusters, Floats
    from models.sbd.params import Conditions

EXAMPLE = """examples:
  cczoo conditions --events data/interim/events --out build/conditions
  cczoo conditions --events NEW --groups build/conditions/groups.json --out build/new --json
  cczoo conditions --events data/interim/events --out build/conditions \\
      --features data/processed/sbd.parquet

writes groups.json (centres, radius, sizes), groups.svg and .png (what the centres look like),
assigned.parquet (connection, group, distance, radius) and, with --features, features.parquet
(the table with a column `condition`, by which train, evaluate and drift can group)"""

FILE = "groups.json"
COLUMN = "condition"
"""Attribute column that is added to the table given by ``--features``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--events", type=Path, required=True, help="ingested directory, or a store")
    selection.add_events(parser)
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument("--groups", type=Path, help="groups.json to assign to, nothing is fitted")
    parser.add_argument("--features", type=Path, help="table to add the column `condition` to")
    parser.add_argument("--params", type=Path, help="YAML file with settings (models: sbd: ...)")
    parser.add_argument("--seed", type=int, help="overrides the settings' seed")
    parser.add_argument("--json", action="store_true", help="print the groups as JSON")


def run(args: argparse.Namespace) -> int:
    """Run ``cczoo conditions``."""
    from pipelines.output import print_json
    from pipelines.params import load as load_settings

    models = load_settings(args.params).models.sbd
    seed = models.seed if args.seed is None else args.seed
    given = None if args.groups is None else read(args.groups)
    table = None if args.features is None else _table(args.features)
    clusters, frame, reasons = group(args.events, models.conditions, seed, given)
    write(args.out, clusters, frame)
    if table is not None:
        _annotate(table, args.features, frame, args.out / "features.parquet")
    counts = Counter(frame["group"].to_list())
    result = {
        "connections": frame.height,
        "fitted": 0 if given else clusters.fitted,
        "groups": {name: counts[name] for name in clusters.names},
        "unlike_any": frame.height - sum(counts[name] for name in clusters.names),
        "without_series": dict(sorted(reasons.items())),
        "rtt_ms": dict(zip(clusters.names, _levels_ms(clusters), strict=True)),
        "choice": list(clusters.choice),
        "out": str(args.out),
    }
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0


def grouping(events: Path, out: Path, settings: Conditions, seed: int) -> dict[str, str]:
    """Find groups of path conditions for ``train sbd groups --conditions``.

    Parameters
    ----------
    events : Path
        Directory made by ``cczoo ingest``.
    out : Path
        Directory that gets ``groups.json``, the plot and the assignments.
    settings : Conditions
        Settings of the groups of path conditions.
    seed : int
        Seed of the fit; the same seed and connections give the same groups.

    Returns
    -------
    dict
        Connection -> ``path-1``, ``path-2`` ... or ``unlike-any``. A connection without an RTT
        series on two subflows is in no group.

    Raises
    ------
    UserError
        With too few connections, or when ``events`` isn't an ingested directory.
    """
    clusters, frame, _ = group(events, settings, seed, None)
    write(out, clusters, frame)
    return dict(zip(frame["connection"], frame["group"], strict=True))


def group(
    events: Path, settings: Conditions, seed: int, clusters: Clusters | None
) -> tuple[Clusters, pl.DataFrame, Counter[str]]:
    """Fit groups, unless they are given, and assign every connection.

    Parameters
    ----------
    events : Path
        Directory made by ``cczoo ingest``.
    settings, seed
        Settings and seed of the fit; given groups have settings of their own for the series.
    clusters : Clusters, optional
        Groups to assign to.

    Returns
    -------
    clusters : Clusters
        The groups.
    frame : polars.DataFrame
        ``connection``, ``group``, ``nearest`` (group of the nearest centre), ``distance``,
        ``radius``, sorted by connection.
    reasons : Counter
        Reasons for which connections have no series.
    """
    import polars as pl

    from models.sbd.conditions import clusters as conditions

    names, rows, reasons = read_series(events, settings if clusters is None else clusters.settings)
    if clusters is None:
        clusters = conditions.fit(rows, settings, seed)
    found = conditions.assign(clusters, rows)
    labels = clusters.names
    frame = pl.DataFrame(
        {
            "connection": names,
            "group": found.labels(clusters),
            "nearest": [labels[one] for one in found.nearest],
            "distance": found.distance,
            "radius": [clusters.radius[one] for one in found.nearest],
        },
        schema_overrides={"connection": pl.String, "group": pl.String, "nearest": pl.String},
    )
    return clusters, frame, reasons


def read_series(events: Path, settings: Conditions) -> tuple[list[str], Floats, Counter[str]]:
    """Read the RTT series of all connections.

    Returns
    -------
    names : list of str
        Names of the connections, sorted so that the fit doesn't depend on the order of the parts.
    rows : float64 array [N, points, 2]
        The series of both subflows.
    reasons : Counter
        Reasons for which the other connections have none.
    """
    from data.store import iter_connections, read_report
    from models.sbd.conditions import clusters as conditions
    from pipelines.output import progress

    total = read_report(events).get("connections")
    found: dict[str, Any] = {}
    reasons: Counter[str] = Counter()
    for row, of in progress(iter_connections(events), "RTT series", total):
        values, reason = conditions.series(row, of, settings)
        if values is None:
            reasons[reason] += 1
        else:
            found[row["connection"]] = values
    names = sorted(found)
    return names, conditions.stacked((found[name] for name in names), settings.points), reasons


def read(path: Path) -> Clusters:
    """Read groups from ``groups.json``, given by its own path or by its directory's.

    Raises
    ------
    UserError
        When there is no such file or it holds no groups.
    """
    from models.sbd.conditions import clusters as conditions

    path = path / FILE if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(
            f"{path}: no such groups: make them with `cczoo conditions --events DIR --out DIR`"
        ) from None
    return conditions.loads(text, str(path))


def write(out: Path, clusters: Clusters, frame: pl.DataFrame) -> None:
    """Write groups, plots and assignments, each whole or not at all; ``groups.json`` last."""
    from models.sbd.conditions import clusters as conditions
    from pipelines.reporting.sbd import conditions_plot

    write_file(out / "assigned.parquet", frame.write_parquet)
    sizes = Counter(frame["group"].to_list())
    for name, content in conditions_plot.draw(clusters, sizes).items():
        write_file(out / name, partial(_put, content))
    write_text(out / FILE, conditions.dumps(clusters))


def _put(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _table(path: Path) -> pl.DataFrame:
    from models.sbd.windows import read as read_table

    frame = read_table(path)
    if COLUMN in frame.columns:
        raise UserError(f"{path}: has a column {COLUMN!r} already: give the table without it")
    return frame


def _annotate(table: pl.DataFrame, path: Path, frame: pl.DataFrame, out: Path) -> None:
    import polars as pl

    own = frame.select("connection", pl.col("group").alias(COLUMN))
    joined = table.join(own, on="connection", how="left", maintain_order="left")
    hashes = {k: v for k, v in pl.read_parquet_metadata(path).items() if k.startswith("cczoo.")}
    write_file(out, lambda part: joined.write_parquet(part, compression="zstd", metadata=hashes))


def _levels_ms(clusters: Clusters) -> list[dict[str, float]]:
    import numpy as np

    middle = np.exp2(np.median(np.array(clusters.centres), axis=1)) / 1e3
    return [{"wifi": round(float(a), 1), "other": round(float(b), 1)} for a, b in middle]


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    view = Table("group", "connections", "median RTT of its centre, ms (WiFi, other)")
    for name, count in result["groups"].items():
        level = result["rtt_ms"][name]
        view.add_row(name, str(count), f"{level['wifi']:.1f}, {level['other']:.1f}")
    view.add_row("unlike any", str(result["unlike_any"]), "")
    console.print(view)
    for reason, count in result["without_series"].items():
        console.print(f"{count} connections without a series: {reason}")
    if result["fitted"]:
        row = next(r for r in result["choice"] if r["k"] == len(result["groups"]))
        console.print(
            f"{len(result['groups'])} groups: silhouette {row['silhouette']:.2f}, agreement of "
            f"two halves (adjusted Rand) {row['stability']:.2f}; fitted on {result['fitted']} "
            f"connections"
        )
    console.print(f"written to {result['out']}")
