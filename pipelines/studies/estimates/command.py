"""Hold estimates from logs against the simulator, to see how far they can be trusted.

Logs are simulated, policies learned from them, each estimated from the logs and then played from
the same decisions on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import print_json, progress
from pipelines.standalone import answer, command_parser

if TYPE_CHECKING:
    from pipelines.studies.estimates.judge import Effort

EXAMPLE = """\
examples:
  python -m pipelines.studies.estimates.command --seeds 1 --out docs/offline-estimates.md
  python -m pipelines.studies.estimates.command --only controls --seeds 1 --json"""
SHORT = 7
"""Policies of a kind of logs, for the progress."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    parser = command_parser("pipelines.studies.estimates.command", __doc__, EXAMPLE)
    parser.add_argument("--seeds", type=int, default=1, help="sets of logs (default 1)")
    parser.add_argument("--only", metavar="TEXT", default="", help="kinds of logs with this in it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="a setting (Effort in pipelines/studies/estimates/judge.py); repeat it",
    )  # fmt: skip
    parser.add_argument(
        "--keep", type=Path, default=Path("reports/estimates"), metavar="FOLDER",
        help="rows of each set of logs, which a command that was killed goes on from (default "
        "%(default)s)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="page whose table is written anew")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Estimate, play and print."""
    from data.errors import UserError
    from data.files import write_text
    from models.one_thread import one_thread
    from pipelines.rl.changes import changes
    from pipelines.studies.estimates import judge, page
    from pipelines.studies.estimates.logs import KINDS

    kinds = [kind for kind in KINDS if args.only in kind]
    if args.seeds < 1 or not kinds:
        raise UserError(f"--seeds: at least 1; --only: one of {', '.join(KINDS)} has it in it")
    if args.out is not None and (args.only or args.set):
        raise UserError("--out: the page has all kinds of logs, as they are by default")
    old = args.out.read_text(encoding="utf-8") if args.out is not None else ""
    if args.out is not None:
        page.MARKS.inside(old, str(args.out))
    effort = judge.Effort.parse(changes(args.set), "--set")
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    work = [(kind, seed) for kind in kinds for seed in range(args.seeds)]
    for kind, seed in work:
        with tempfile.TemporaryDirectory() as folder:
            rows = judge.rows(kind, seed, effort, Path(folder))
            shown = progress(rows, f"{kind}, seed {seed}", SHORT)
            with one_thread():
                found[kind] += _kept(args.keep, kind, seed, effort, shown)
    result = {
        kind: {"summary": judge.summary(rows), "policies": rows} for kind, rows in found.items()
    }
    if args.out is not None:
        made = page.table(result, args.seeds)
        write_text(args.out, page.MARKS.placed(old, made, str(args.out)))
    if args.json:
        print_json(result)
    elif args.out is None:
        print(page.table(result, args.seeds), end="")
    return 0


def _kept(folder: Path, kind: str, seed: int, effort: Effort, rows: Any) -> list[dict[str, Any]]:
    """Rows of a set of logs: those that were found before, or else new ones, which are kept."""
    import json

    from data.files import write_text

    path, asked = folder / f"{kind.split()[0]}-{seed}.json", effort.model_dump(mode="json")
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["effort"] == asked:
            return list(before["rows"])
    found = list(rows)
    write_text(path, json.dumps({"effort": asked, "rows": found}, indent=1) + "\n")
    return found


if __name__ == "__main__":
    sys.exit(main())
