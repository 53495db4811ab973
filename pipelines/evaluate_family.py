"""``cczoo evaluate NAME`` for a family without a command of its own: measure a model on data."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.sources import MODEL

EXAMPLE = "example: cczoo evaluate NAME --model ENTRY --data FILE --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that every family's evaluation has."""
    parser.add_argument("--model", required=True, help=MODEL)
    parser.add_argument(
        "--data", type=Path, help="what to measure on (default: where make repro leaves it)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Measure an entry of the family that ``args.task`` names, and print its figures."""
    from dataclasses import asdict

    from data.errors import UserError
    from models.families import family, name_of
    from pipelines.output import print_json
    from pipelines.sources import open_model

    entry = open_model(args.model)
    name = name_of(entry.meta)
    if name != args.task:
        raise UserError(f"{args.model}: of the family {name}: cczoo evaluate {name} measures it")
    chosen = family(name)
    data = args.data or chosen.data(entry.meta.family)
    if not data.exists():
        raise UserError(f"{data}: no such data: collect it first, or give --data")
    figures = chosen.evaluate(entry, data)
    if args.json:
        shown = {key: asdict(figure) for key, figure in figures.items()}
        print_json({"model": args.model, "data": str(data), "figures": shown})
        return 0
    from rich.console import Console
    from rich.table import Table

    view = Table("", "mean [95 %]", "over", title=args.model)
    for key, figure in figures.items():
        limits = "" if figure.low is None else f" [{figure.low:.3f}, {figure.high:.3f}]"
        mean = "–" if figure.mean is None else f"{figure.mean:.3f}{limits}"
        view.add_row(key, mean, f"{figure.count} {figure.of}")
    Console().print(view)
    return 0
