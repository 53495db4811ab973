"""Read kernel logs and traces into Parquet tables: events, connections and quarantine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

EXAMPLE = """\
examples:
  cczoo ingest data/raw --out data/interim/mine --json
  cczoo ingest logs/ --labels labels.csv --out ingested
  cczoo ingest subflow-*.csv --connection-key '(run[0-9]+)' --out ingested
  ssh router 'cat /tmp/probe.csv' | cczoo ingest - --out ingested

Formats are recognised by content; docs/formats.md describes each. labels.csv has a column
`source` (a log's name) and any others: label (SB or NSB), dataset, kernel, cc, ..."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="log, directory or pipe; - is standard input",
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        help="directory to make; one that ingest made, and that holds nothing else, is replaced",
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
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def run(args: argparse.Namespace) -> int:
    """Ingest; returns 1 when no event was found."""
    from data.errors import UserError
    from data.ingest import Settings, ingest
    from pipelines.output import print_json, progress_bytes

    if args.jobs is not None and args.jobs < 1:
        raise UserError(f"--jobs {args.jobs}: give a number of processes from 1 on")
    settings = Settings(args.format, args.jobs, args.connection_key, args.srtt_unit)
    report = ingest(args.paths, args.out, args.labels, settings, progress_bytes)
    _warn(report, args.out)
    if args.json:
        print_json(report)
    else:
        _print_counts(report, args.out)
    return 0 if report["events"] else 1


def _warn(report: dict[str, Any], out: Path) -> None:
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
        warn(f"{report['quarantined_lines']} lines not understood: see {out}/quarantine.parquet")
    if not report["events"]:
        warn(f"no events in these logs: {out}/quarantine.parquet says why; docs/formats.md has the "
            "formats")  # fmt: skip


def _print_counts(report: dict[str, Any], out: Path) -> None:
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
