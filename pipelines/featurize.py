"""Compute features from an ingested directory: one row per window of a connection."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import UserError, unknown_name

if TYPE_CHECKING:
    from features.params import SbdParams

EXAMPLE = """\
examples:
  cczoo features sbd --events data/interim/mine --out mine.parquet --json
  cczoo features sbd --store s3://bucket/store     # what is new in it; docs/fleet.md
  cczoo features decisions tcco --events data/interim/mine --out decisions.parquet
  cczoo features decisions tcco --store STORE --where "day >= 2026-11-01"

tables: sbd (features of both families, docs/features.md), series (the raw pair of series of each
window, for neural models: docs/neural.md), decisions (what the logged control saw, did and would
have been paid as an agent: tcco, nuwa or macc; docs/decisions.md)
columns of sbd and series: source, connection, window, label, start_us, end_us, rtt_kind,
subflow_a, subflow_b, the features, then the connection's attributes; three and more subflows: a
row for each pair"""


OTHERS = {"decisions": "pipelines.decisions.of_logs"}
"""Table that isn't of windows -> module with ``run(args)``; stages of the others don't run it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("what", help="what to compute: sbd, series or decisions")
    parser.add_argument("agent", nargs="?", help="with decisions, whose: tcco, nuwa or macc")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--events", type=Path, help="directory made by ingest")
    place.add_argument("--store", help="store: compute what is new, and keep it there")
    parser.add_argument("--out", type=Path, help="Parquet file to write (with --events)")
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="with --store: only these days, or values of the labels that part it",
    )
    settings = parser.add_mutually_exclusive_group()
    settings.add_argument(
        "--params", type=Path, help="YAML file with settings (features: sbd: ...)"
    )
    settings.add_argument(
        "--model", help="with the settings that this model was trained with (as cczoo export)"
    )
    parser.add_argument("--jobs", type=int, default=0, help="processes (default: all cores)")
    parser.add_argument(
        "--behaviour", metavar="CC", help="with decisions: control of logs that don't name theirs"
    )
    parser.add_argument(
        "--set",
        nargs="+",
        metavar="KEY=VALUE",
        help="with decisions: settings, as params.observation.interval_us=50000",
    )
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def run(args: argparse.Namespace) -> int:
    """Run ``cczoo features``."""
    if args.what in OTHERS:
        code: int = importlib.import_module(OTHERS[args.what]).run(args)
        return code
    return of_windows(args)


def of_windows(args: argparse.Namespace) -> int:
    """Compute a table that has a row per window."""
    from data.inputs import check_outside
    from features.sbd import TABLES
    from pipelines.feature_rows import featurize, write

    if args.what not in TABLES:
        raise unknown_name("feature table", args.what, [*TABLES, *OTHERS])
    for name, given in (
        ("AGENT", args.agent),
        ("--behaviour", args.behaviour),
        ("--set", args.set),
    ):
        if given is not None:
            raise UserError(f"{name}: belongs to decisions, and {args.what} has none")
    check_place(args)
    if args.store is not None:
        return _in_store(args)
    if args.out is None:
        raise UserError("--out is missing: name the Parquet file to write")
    if args.out.is_dir():
        raise UserError(f"--out {args.out}: is a directory: give a file name")
    check_outside(args.out, [args.events], "events")
    jobs = args.jobs or len(os.sched_getaffinity(0))
    settings = _settings(args)
    table, counts = featurize(args.events, settings, jobs, args.what)
    write(table, args.out, settings, args.what)
    if args.json:
        from pipelines.output import print_json

        print_json({**counts, "out": str(args.out)})
    else:
        without = counts["connections_without_window"]
        print(f"{counts['windows']} windows of {counts['connections']} connections → {args.out}")
        for reason, number in without["reasons"].items():
            print(f"  without a window: {number} ({reason})")
    return 0


def check_place(args: argparse.Namespace) -> None:
    """Refuse options that don't go with the place of the events."""
    if args.jobs < 0:
        raise UserError(f"--jobs {args.jobs}: give a positive number")
    if args.store is None and args.where is not None:
        raise UserError("--where: goes with --store: name the store to select from")
    if args.store is not None and args.out is not None:
        raise UserError(f"--out {args.out}: features of a store are kept in it: leave --out away")


def _in_store(args: argparse.Namespace) -> int:
    from pipelines.fleet.run import followed
    from pipelines.fleet.windows import Windows
    from pipelines.output import print_json

    found = followed(args, Windows(args.what, _settings(args)))
    if args.json:
        without = {"count": found.computed.reasons.total(), "reasons": found.computed.reasons}
        print_json(
            {
                "windows": found.computed.rows,
                "connections": found.connections,
                "connections_without_window": without,
                "windows_kept": found.kept,
                "settings": found.settings,
                "version": found.version,
            }
        )
        return 0
    print(
        f"{found.computed.rows} windows of {found.connections} connections computed, "
        f"{found.kept} windows kept → {args.store}, version {found.version}"
    )
    for reason, number in found.computed.reasons.items():
        print(f"  without a window: {number} ({reason})")
    return 0


def _settings(args: argparse.Namespace) -> SbdParams:
    from features.params import SbdParams
    from features.sbd import table_of
    from pipelines.params import load
    from pipelines.sources import open_model

    if args.model is None:
        return load(args.params).features.sbd
    meta = open_model(args.model).meta
    if table_of(meta.family) != args.what:
        raise UserError(f"--model {args.model}: its features aren't of the table {args.what}")
    return SbdParams.parse(meta.feature_settings, f"{args.model}: feature_settings")
