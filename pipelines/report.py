"""Write the offline HTML report, the headline numbers and the series behind the plots."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.reporting.inputs import Inputs

EXAMPLE = "example: cczoo report --out reports/index.html"
DEFAULT = Path("reports/index.html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--out", type=Path, default=DEFAULT, help="page (default: %(default)s)")
    parser.add_argument(
        "--root", type=Path, default=Path("."), help="checkout that the tables are read from"
    )
    parser.add_argument("--where", action="store_true", help="only tell where the report is")
    parser.add_argument(
        "--verdicts", action="store_true", help="only tell what the agents trained here beat"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def run(args: argparse.Namespace) -> int:
    """Write the report, or print its place or the agents' verdicts."""
    if args.where:
        return where(args.out, args.json)
    if args.verdicts:
        return verdicts(args.root, args.json)
    from data.files import write_text
    from pipelines.output import print_json
    from pipelines.reporting.inputs import Inputs
    from pipelines.reporting.page import render
    from pipelines.reporting.sbd import headline
    from pipelines.results import NUMBERS

    _check(args.root, args.out)
    inputs = Inputs(args.root)
    html, missing = render(inputs)
    numbers = headline.numbers(inputs)
    write_text(args.out, html)
    NUMBERS.write(args.out.parent, numbers)
    plots = write_plots(inputs, args.out.with_name("plots"))
    done = {
        "report": str(args.out),
        "bytes": len(html.encode()),
        "headline": numbers,
        "plots": [str(path) for path in plots],
        "missing": missing,
    }
    if args.json:
        print_json(done)
        return 0
    for line in missing:
        print(f"not shown: {line}", file=sys.stderr)
    return where(args.out, False)


def where(page: Path, as_json: bool) -> int:
    """Print the report's place, or the command that makes it."""
    here = page.is_file()
    if as_json:
        from pipelines.output import print_json

        print_json({"report": str(page), "exists": here})
    elif here:
        print(f"The report is ready: {page}")
        print(f"Open it in a browser (no network needed): {page.resolve().as_uri()}")
    else:
        print(f"There is no report yet at {page}.")
        print("Make everything with `make repro`, or the page alone with `cczoo report`.")
    return 0


def verdicts(root: Path, as_json: bool) -> int:
    """Print what came of each agent's training, or the command that trains it; always 0."""
    from data.results import plain
    from pipelines.output import print_json
    from pipelines.reporting.inputs import Inputs, MissingInput
    from pipelines.rl.results import FOLDER, SHOWN, VERDICT

    found = {}
    for name in SHOWN:
        path = root / "reports" / FOLDER / name / VERDICT.name
        try:
            found[name] = Inputs(root).result(VERDICT, path, f"dvc repro agent-{name}")
        except MissingInput as error:
            print(f"{error}: make it with `{error.command}`", file=sys.stderr)
    if as_json:
        print_json({name: plain(one) for name, one in found.items()})
        return 0
    for one in found.values():
        print("\n  ".join(one.text))
    return 0


def write_plots(inputs: Inputs, directory: Path) -> list[Path]:
    """Write the series behind the plots as CSV for ``dvc plots``, as far as their tables exist.

    Returns
    -------
    list of Path
        ``fig6-depth.csv`` (model, k, depth, accuracy), ``calibration.csv`` (model, kind,
        probability, share_sb, windows), ``coverage.csv`` (confidence, coverages, accuracies).
    """
    import polars as pl

    from data.files import write_text
    from models.sbd.results.verdicts import CALIBRATION, LOFO
    from pipelines.reporting.inputs import MissingInput

    frames: dict[str, pl.DataFrame] = {}
    try:
        curves = inputs.search.filter(pl.col("depth").is_not_null())
        frames["fig6-depth"] = curves.select("model", "k", "depth", "accuracy")
    except MissingInput:
        pass
    bins = [
        {
            "model": row.model,
            "kind": row.kind,
            "probability": one.mean_probability,
            "share_sb": one.share_sb,
            "windows": one.windows,
        }
        for row in inputs.optional(CALIBRATION) or ()
        for one in row.bins
    ]
    lofo = inputs.optional(LOFO)
    nested = lofo.nested if lofo else None
    coverage = [row.model_dump() for row in nested.coverage] if nested else []
    for name, rows in (("calibration", bins), ("coverage", coverage)):
        if rows:
            frames[name] = pl.DataFrame(rows)
    written = []
    for name, frame in frames.items():
        path = directory / f"{name}.csv"
        write_text(path, frame.write_csv())
        written.append(path)
    return written


def _check(root: Path, out: Path) -> None:
    from data.errors import UserError

    if not root.is_dir():
        raise UserError(f"--root {root}: no such directory: give the checkout's")
    if out.is_dir():
        raise UserError(f"--out {out}: is a directory: give a file name, such as {out}/index.html")
