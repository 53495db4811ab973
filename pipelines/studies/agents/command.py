"""Publish trainings of several seeds: what they get in test episodes, with intervals, as a page.

The best network of each seed plays the same episodes as policies by hand, which neither training
nor validation has seen. Curves (Parquet), figures (JSON) and drawings stand beside the page; seeds
that are trained later are added to them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from data.files import write_text
from pipelines.standalone import answer, command_parser

EXAMPLE = """\
examples:
  cczoo train macc --set steps=120000 --set validation_episodes=16 --seeds 10
  python -m pipelines.studies.agents.command macc       # adds its seeds, writes docs/agents.md
  python -m pipelines.studies.agents.command macc --fresh 2    # do two more seeds land there?
  python -m pipelines.studies.agents.command macc --choose 32  # which seed to release?
  python -m pipelines.studies.agents.command --json     # what is published, as it is"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    from pipelines.studies.agents.kept import PAGE

    parser = command_parser("pipelines.studies.agents.command", __doc__, EXAMPLE)
    parser.add_argument("agent", nargs="?", help="as `cczoo train` takes it; the page alone is "
                        "written without one")  # fmt: skip
    parser.add_argument("--trained", type=Path, metavar="FOLDER",
                        help="of seed-7, seed-8, ... (default reports/rl/AGENT)")  # fmt: skip
    parser.add_argument("--episodes", type=int,
                        help="test episodes (default: as published, or 32)")  # fmt: skip
    parser.add_argument("--again", action="store_true",
                        help="play everybody again, after a change of the simulator")  # fmt: skip
    parser.add_argument("--fresh", type=int, metavar="N",
                        help="train N seeds that aren't published, with the published settings, "
                        "and say whether they land in the interval for one more seed (exit "
                        "status 1: one doesn't)")  # fmt: skip
    parser.add_argument("--choose", type=int, metavar="N",
                        help="play N validation episodes, the same for all seeds, and say which "
                        "seed to release; nothing is published")  # fmt: skip
    parser.add_argument("--out", type=Path, default=PAGE,
                        help="page; a folder beside it (default: %(default)s)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the statistics as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Add an agent's seeds, write the page, print."""
    from data.errors import UserError
    from data.results import plain
    from models.rl import agents
    from pipelines.output import print_json
    from pipelines.studies.agents import figures, kept, page, publish

    if args.fresh is not None and args.fresh < 1:
        raise UserError("--fresh: give a whole number of at least 1")
    if args.choose is not None and args.choose < 1:
        raise UserError("--choose: give a whole number of at least 1")
    if args.episodes is not None and args.episodes < 2:
        raise UserError("--episodes: give a whole number of at least 2")
    asked = (args.fresh, args.choose, args.again, args.trained, args.episodes)
    if args.agent is None and any(asked):
        raise UserError("name an agent: `--help` shows examples")
    folder = args.out.with_suffix("")
    if args.agent is not None:
        agents.agent(args.agent)
        trained = args.trained or Path("reports/rl") / args.agent
        if args.choose:
            return _choose(args, trained)
        if args.fresh:
            return _fresh(args, trained, folder)
        publish.publish(args.agent, trained, folder, args.episodes, args.again)
    names = kept.agents(folder)
    if not names:
        raise UserError(f"{folder}: nothing is published there: name an agent")
    found = {name: kept.file(name).read(folder) for name in names}
    for name, one in found.items():
        figures.write(folder, one, kept.read_curves(folder, name))
    write_text(args.out, page.page(found, folder.name))
    if args.json:
        print_json({name: page.summary(one) | {"statistics": plain(one.statistics)}
                    for name, one in found.items()})  # fmt: skip
    else:
        for one in found.values():
            print(page.line(one))
        print(f"→ {args.out}")
    return 0


def _choose(args: argparse.Namespace, trained: Path) -> int:
    """Which seed to release."""
    from pipelines.output import print_json
    from pipelines.studies.agents import choose

    found = choose.choose(args.agent, trained, args.choose)
    if args.json:
        print_json(found)
    else:
        print("\n".join(choose.lines(found)))
    return 0


def _fresh(args: argparse.Namespace, trained: Path, folder: Path) -> int:
    """Whether fresh seeds land in the published interval."""
    from pipelines.output import print_json
    from pipelines.studies.agents import fresh, kept

    found = fresh.check(kept.file(args.agent).read(folder), args.fresh, trained)
    if found is None:
        return 1
    if args.json:
        print_json(found)
    else:
        print("\n".join(fresh.lines(found)))
    return 0 if all(one["inside"] for one in found["fresh"]) else 1


if __name__ == "__main__":
    sys.exit(main())
