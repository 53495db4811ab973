"""Play scripted policies in every environment, all on the same episodes.

Random actions, holding, constants and rules by hand: what they get is what an agent has to beat.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from data.files import write_text
from pipelines.output import print_json, progress
from pipelines.standalone import answer, command_parser

EXAMPLE = """\
examples:
  python -m pipelines.studies.environments.command --seeds 32 --out docs/environments.md
  python -m pipelines.studies.environments.command --only TCCO --seeds 32 --out docs/environments.md
  python -m pipelines.studies.environments.command --only MA-CC --seeds 8 --json
  python -m pipelines.studies.environments.command --only Nuwa --agent reports/rl/nuwa/seed-7"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    parser = command_parser("pipelines.studies.environments.command", __doc__, EXAMPLE)
    parser.add_argument("--seeds", type=int, default=16, help="episodes of each (default 16)")
    parser.add_argument("--steps", type=int, help="steps of an episode (default all)")
    parser.add_argument("--only", metavar="TEXT", help="environments whose name has this in it")
    parser.add_argument(
        "--agent",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="also play what `cczoo train` left in this folder; repeat it",
    )
    parser.add_argument(
        "--out", type=Path, help="page whose table is written anew; with --only those rows"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Play and print."""
    from data.errors import UserError
    from pipelines.studies.environments import classes, page
    from pipelines.studies.environments.judge import PROBLEMS, Played, Result, play, trained

    if args.seeds < 2 or (args.steps is not None and args.steps < 1):
        raise UserError("--seeds: at least 2, an interval needs two; --steps: at least 1")
    chosen = {name: rows for name, rows in PROBLEMS.items() if (args.only or "") in name}
    if not chosen:
        raise UserError(f"--only: no environment has {args.only!r} in its name: {list(PROBLEMS)}")
    if args.out is not None and not args.out.is_file():
        raise UserError(f"{args.out}: no such page: name docs/environments.md")
    if args.out is not None and (args.agent or args.steps):
        raise UserError("--out: the page has whole episodes of policies by hand: leave --agent and "
                        "--steps out")  # fmt: skip
    old = args.out.read_text(encoding="utf-8") if args.out is not None else ""
    others = [name for name in PROBLEMS if name not in chosen] if args.out is not None else []
    kept = page.standing(old, others, args.seeds, str(args.out)) if others else {}
    more = trained(args.agent)
    every = [(name, played) for name, rows in chosen.items() for played in rows + more[name]]
    results: dict[str, list[Result]] = {name: [] for name in chosen}
    # A policy that stands in two problems is played once.
    done: dict[Played, Result] = {}
    for name, played in progress(every, "playing", len(every)):
        if played not in done:
            done[played] = play(played, args.seeds, args.steps)
        results[name].append(done[played])
    found = {name: page.figures(rows) for name, rows in results.items()}
    lines = kept | {name: page.lines_of(name, rows) for name, rows in found.items()}
    made = page.table({name: lines[name] for name in PROBLEMS if name in lines}, args.seeds)
    of_classes = classes.figures(args.steps) if any("TCCO" in name for name in chosen) else []
    if of_classes:
        made += f"\n{classes.table(of_classes)}"
    elif kept:
        made += f"\n{page.after_table(old, str(args.out))}"
    if args.out is not None:
        write_text(args.out, page.MARKS.placed(old, made, str(args.out)))
    if args.json:
        print_json({"seeds": args.seeds, "environments": found, "path_classes": of_classes})
    elif args.out is None:
        print(made, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
