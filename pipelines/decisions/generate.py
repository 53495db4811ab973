"""Write decisions of all classical congestion controls in simulated scenarios, to learn from.

Files are kept as soon as they are whole: a command that was killed goes on where it was, and what
it writes is the same to the byte. Work is spread over the processor's cores, or over the Ray
cluster that RAY_ADDRESS names; what comes back is written here.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.output import print_json
from pipelines.standalone import answer, command_parser

if TYPE_CHECKING:
    from pipelines.decisions.plan import Recipe

EXAMPLE = """\
examples:
  python -m pipelines.decisions.generate --out data/processed/decisions
  python -m pipelines.decisions.generate --share 0.1 --out data/processed/decisions-sample --json
  RAY_ADDRESS=10.0.0.1:6379 python -m pipelines.decisions.generate --out data/processed/decisions"""
RECIPE = "recipe.json"
"""What the files in a folder are made by."""
CODE = (
    "data/decisions/*.py", "features/intervals.py", "features/tcco.py", "models/decisions/*.py",
    "models/envs/batching.py", "models/envs/loop.py", "models/envs/tcco*.py",
    "pipelines/decisions/plan.py", "pipelines/league/draw.py", "pipelines/league/families.py",
    "pipelines/league/multi.py", "pipelines/league/single.py",
)  # fmt: skip
"""Files besides the simulator's that decide what is in the set."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    parser = command_parser("pipelines.decisions.generate", __doc__, EXAMPLE)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--agent", help="whose decisions: tcco (default) or macc")
    parser.add_argument("--share", type=float, help="share of all runs, for a sample (default 1)")
    parser.add_argument("--scenarios", type=int, help="of each family (default 40)")
    parser.add_argument("--replicas", type=int, help="of each simulation (default 4)")
    parser.add_argument("--seconds", type=float, help="of a run (default: as the scenario says)")
    parser.add_argument("--seed", type=int, help="that draws the scenarios (default 18)")
    parser.add_argument("--jobs", type=int, default=0, help="processes (default: all cores)")
    parser.add_argument("--sheet", action="store_true",
                        help="simulate nothing, describe what is there already")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the data sheet as JSON")
    return answer(parser, run, argv, resumes=True)


def run(args: argparse.Namespace) -> int:
    """Simulate what isn't there yet, then describe the whole."""
    from data.errors import UserError
    from pipelines.decisions import plan, sheet, work

    if args.jobs < 0:
        raise UserError(f"--jobs {args.jobs}: give a positive number")
    names = ("agent", "share", "scenarios", "replicas", "seconds", "seed")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    recipe = plan.Recipe.parse(given, "the options")
    keep_recipe(args.out, recipe)
    made = work.Made()
    if not args.sheet:
        work.simulate(args.out, recipe, args.jobs or len(os.sched_getaffinity(0)), made)
    found = sheet.write(args.out, recipe)
    if args.json:
        print_json({**found, "made_now": made.plain()})
        return 0
    print(
        f"{found['decisions']} decisions of {found['runs']} runs, {found['bytes'] / 1e6:.0f} MB"
        f" → {args.out} ({sheet.PAGE} describes them)"
    )
    if made.decisions:
        cost = made.plain()
        print(
            f"made now: {made.decisions} in {made.cpu_s:.0f} CPU seconds, "
            f"{cost['decisions_per_cpu_s']:.0f} a second, {cost['mb_per_million']:.1f} MB a million"
        )
    return 0


def keep_recipe(out: Path, recipe: Recipe) -> None:
    """Note what a folder's files are made by.

    Raises
    ------
    UserError
        If those that are there are of other settings, or of other code.
    """
    import json

    from data.errors import UserError
    from data.files import write_text

    mine = {**recipe.model_dump(), "code": code()}
    path = out / RECIPE
    if not path.is_file():
        write_text(path, json.dumps(mine, indent=2) + "\n")
        return
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        there = {}
    other = [name for name, value in mine.items() if there.get(name) != value]
    if other:
        raise UserError(
            f"{out}: holds decisions of another {' and '.join(other)}: give another --out, or "
            "remove the folder"
        )


def code() -> str:
    """Hash of the code that decisions follow from: what simulates, observes, pays and draws."""
    import hashlib

    from pipelines.decisions.plan import CLASSICAL
    from pipelines.studies.papers.runs import sources

    root = Path(__file__).parents[2]
    digest = hashlib.sha256(sources(frozenset(CLASSICAL)).encode())
    for pattern in CODE:
        for path in sorted(root.glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
