"""Train agents beside other algorithms, ablations and printed values, and write what came of it.

Each group has one agent and what it is compared with, in one environment, with the agent's small
budget of params.yaml. Finished trainings are kept: a command that was stopped goes on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from data.files import write_text
from pipelines.standalone import answer, command_parser

EXAMPLE = """\
examples:
  python -m pipelines.studies.comparisons.command macc --train --seeds 3
  python -m pipelines.studies.comparisons.command nuwa-4g,nuwa-5g --train --seeds 3 --json
  python -m pipelines.studies.comparisons.command      # the page alone, of what is kept"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    parser = command_parser("pipelines.studies.comparisons.command", __doc__, EXAMPLE)
    parser.add_argument("groups", nargs="?", help="with commas between (default: none is played)")
    parser.add_argument("--train", action="store_true", help="train what isn't trained yet")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each (default 3)")
    parser.add_argument("--episodes", type=int, default=32, help="test episodes (default 32)")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"),
                        help="file of the budgets (default: %(default)s)")  # fmt: skip
    parser.add_argument("--trained", type=Path, default=Path("reports/comparisons"),
                        help="where trainings are kept (default: %(default)s)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("docs/comparisons.md"),
                        help="page; a folder beside it (default: %(default)s)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Train, play, write the page, print."""
    from data.errors import UserError, unknown_name
    from pipelines.output import print_json
    from pipelines.params import load
    from pipelines.studies.comparisons import drawing, kept, page, play
    from pipelines.studies.comparisons.groups import GROUPS

    for option, least in (("seeds", 1), ("episodes", 2)):
        if getattr(args, option) < least:
            raise UserError(f"--{option}: give a whole number of at least {least}")
    folder = args.out.with_suffix("")
    for name in args.groups.split(",") if args.groups else ():
        if name not in GROUPS:
            raise unknown_name("group", name, GROUPS)
        budget = load(args.params).agents.of(GROUPS[name].agent)
        trained = args.trained / name
        if args.train and not play.train(GROUPS[name], budget, args.seeds, trained):
            return 1
        found = play.played(name, GROUPS[name], budget, trained, args.episodes)
        if not found.entries:
            raise UserError(f"{trained}: no finished training: give --train")
        kept.file(name).write(folder, found)
    there = {name: kept.file(name).read(folder) for name in GROUPS
             if (folder / kept.file(name).name).is_file()}  # fmt: skip
    if not there:
        raise UserError(f"{folder}: nothing is kept there: name a group, with --train")
    for name, one in there.items():
        drawing.write(folder / f"{name}.svg", one)
    write_text(args.out, page.page(there, folder.name))
    if args.json:
        print_json({name: page.summary(one) for name, one in there.items()})
    else:
        print(f"→ {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
