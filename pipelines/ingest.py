"""Read kernel logs and traces into Parquet tables: events, connections and quarantine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from data.ingest import Settings

EXAMPLE = """\
examples:
  cczoo ingest data/raw --out data/interim/mine --json
  cczoo ingest logs/ --labels labels.csv --out ingested
  cczoo ingest subflow-*.csv --connection-key '(run[0-9]+)' --out ingested
  ssh router 'cat /tmp/probe.csv' | cczoo ingest - --out ingested
  cczoo ingest logs/2026-11-01 --into s3://bucket/store    # docs/fleet.md

Formats are recognised by content; docs/formats.md describes each. labels.csv has a column
`source` (a log's name) and any others: label (SB or NSB), dataset, kernel, cc, ..."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="log, directory or pipe; - is standard input; with --into also a URL",
    )
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--out",
        type=Path,
        help="directory to make; one that ingest made, and that holds nothing else, is replaced",
    )
    place.add_argument(
        "--into",
        metavar="STORE",
        help="store to add the logs to, a folder or a URL: each log is taken once",
    )
    parser.add_argument("--labels", type=Path, help="CSV with `source` and any other columns")
    parser.add_argument("--format", default="auto", help="a format's name, or auto (default)")
    parser.add_argument("--jobs", type=int, help="processes (default: one per core)")
    parser.add_argument(
        "--connection-key",
        metavar="REGEX",
        help="regular expression with one group: files whose names agree in it are one connection",
    )
    parser.add_argument(
        "--srtt-unit",
        choices=("auto", "ms", "us"),
        default="auto",
        help="unit of srtt in the old tcpprobe text",
    )
    store = parser.add_argument_group("with --into")
    store.add_argument(
        "--partition-by",
        metavar="COLUMN,...",
        help="label columns that part a new store besides the day",
    )
    store.add_argument("--day", help="day of all logs (default: by label, name, or their times)")
    store.add_argument(
        "--root", metavar="DIR", help="name logs by their paths below it (default: whole paths)"
    )
    store.add_argument(
        "--pseudonymise",
        type=Path,
        metavar="KEYFILE",
        help="replace addresses, ports and names of logs by hashes with the key in this file",
    )
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def run(args: argparse.Namespace) -> int:
    """Ingest; returns 1 when no event was found."""
    from data.errors import UserError
    from data.ingest import Settings, ingest
    from pipelines.output import print_json, progress_bytes

    if args.jobs is not None and args.jobs < 1:
        raise UserError(f"--jobs {args.jobs}: give a number of processes from 1 on")
    settings = Settings(args.format, args.jobs, args.connection_key, args.srtt_unit)
    if args.into is not None:
        return _into_store(args, settings)
    for name in ("partition_by", "day", "root", "pseudonymise"):
        if getattr(args, name) is not None:
            raise UserError(f"--{name.replace('_', '-')}: goes with --into, not with --out")
    paths = [Path(path) for path in args.paths]
    report = ingest(paths, args.out, args.labels, settings, progress_bytes)
    _warn(report, args.out)
    if args.json:
        print_json(report)
    else:
        _print_counts(report, args.out)
    return 0 if report["events"] else 1


def _into_store(args: argparse.Namespace, settings: Settings) -> int:
    """Add to a store; returns 0 also if nothing is new, as on a night without traffic."""
    from data.fleet.address import address
    from data.fleet.ingest import ingest_into
    from data.fleet.pseudonyms import read_key
    from pipelines.fleet.spread import spread_over
    from pipelines.output import print_json, progress_bytes

    parted = None
    if args.partition_by is not None:
        parted = [name for name in args.partition_by.split(",") if name]
    report = ingest_into(
        [address(path) for path in args.paths],
        address(args.into),
        spread_over(args.jobs),
        settings,
        args.labels,
        root=args.root,
        day=args.day,
        partition_by=parted,
        key=None if args.pseudonymise is None else read_key(args.pseudonymise),
        progress=progress_bytes,
    )
    _warn({**report, "events": True}, f"cczoo store list {args.into} --quarantine")
    if args.json:
        print_json(report)
        return 0
    logs = ", ".join(f"{count} {status}" for status, count in report["logs"].items() if count)
    print(f"logs: {logs or 'none'}")
    if report["sources"]:
        _print_counts(report, f"{args.into}, version {report['version']}")
    return 0


def _warn(report: dict[str, Any], out: Path | str) -> None:
    def warn(text: str) -> None:
        print(f"cczoo ingest: {text}", file=sys.stderr)

    if report["labels_unmatched"]:
        warn(
            f"{report['labels_unmatched']} rows of {', '.join(report['labels_files'])} match no log"
        )
    if report["labels_files"] and report["sources_unlabelled"]:
        warn(
            f"{report['sources_unlabelled']} logs have no row in "
            + ", ".join(report["labels_files"])
        )
    if report["damaged_sources"]:
        warn(f"{report['damaged_sources']} compressed logs end early or are damaged")
    if report["quarantined_lines"]:
        where = f"{out}/quarantine.parquet" if isinstance(out, Path) else f"`{out}`"
        warn(f"{report['quarantined_lines']} lines not understood: see {where}")
    if not report["events"]:
        warn(f"no events in these logs: {out}/quarantine.parquet says why; docs/formats.md has the "
            "formats")  # fmt: skip


def _print_counts(report: dict[str, Any], out: Path | str) -> None:
    from pipelines.output import size

    formats = ", ".join(f"{count} {name}" for name, count in report["formats"].items())
    print(f"{report['sources']} logs ({formats}), {size(report['bytes'])} of text")
    print(
        f"{report['lines_read']} lines read = {report['event_lines']} with events"
        f" + {report['skipped_lines']} skipped + {report['quarantined_lines']} quarantined"
    )
    print(
        f"{report['events']} events, {report['connections']} connections, "
        f"{report['subflows']} subflows -> {out} ({report['seconds']:.1f} s)"
    )
