"""Measure trained agents against their bars, out of the range of training, and for fairness.

A bar is what an agent has to reach: in its paper's scenarios, and over what classical controls and
policies by hand get on the same runs. Finished runs are kept: a command that was killed goes on
where it was.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.output import print_json, progress
from pipelines.standalone import answer, command_parser

if TYPE_CHECKING:
    from models.closedloop import Player
    from pipelines.studies.bars.bench import Bench
    from pipelines.studies.bars.judge import Bar
    from pipelines.studies.bars.kept import Measured
    from pipelines.studies.papers.runs import Kept

EXAMPLE = """\
examples:
  python -m pipelines.studies.bars.command --agent macc=reports/rl/macc/seed-7 --seeds 10
  python -m pipelines.studies.bars.command --agent tcco=reports/rl/tcco/seed-7 --only fig9 --json
  python -m pipelines.studies.bars.command --out docs/bars.md"""
BEYOND = ("conditions", "fairness")
"""What ``--only`` finds besides bars."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    from pipelines.studies.acting import add_argument

    parser = command_parser("pipelines.studies.bars.command", __doc__, EXAMPLE)
    add_argument(parser)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default 10)")
    parser.add_argument("--only", metavar="TEXT", default="",
                        help="bars with this in their key, or conditions, or fairness")  # fmt: skip
    parser.add_argument("--work", type=Path, default=Path("data/interim/papers"),
                        help="where finished runs are kept (default: %(default)s)")  # fmt: skip
    parser.add_argument("--out", type=Path, help="Markdown page to write; figures beside it, where "
                        "those of other agents stay as they are")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Measure and print; write the page if asked for."""
    from data.errors import UserError
    from data.files import write_text
    from pipelines.studies import acting
    from pipelines.studies.bars import kept, page
    from pipelines.studies.papers.runs import Kept

    if args.seeds < 2:
        raise UserError("--seeds: give a whole number of at least 2: an interval needs two runs")
    if args.out is not None and args.only:
        raise UserError("--out: the page has all bars: leave --only out")
    for name in (text.partition("=")[0] for text in args.agent):
        if name in acting.names() and name not in acting.HEADS:
            raise UserError(f"--agent {name}: no bars for it: give {', '.join(acting.HEADS)}")
    given = acting.given(args.agent)
    if not given:
        raise UserError(
            "no agent in the zoo: train one (cczoo train macc) and give --agent "
            "macc=reports/rl/macc/seed-7"
        )
    with Kept(args.work) as runs:
        every = [measured(*one, args.seeds, args.only, runs) for one in given.items()]
    found = [one for one in every if one is not None]
    if not found:
        raise UserError(f"--only {args.only}: no bar has that in its key: see docs/bars.md")
    if args.out is not None:
        folder = args.out.with_suffix("")
        for one in found:
            kept.file_of(one.name).write(folder, one)
        write_text(args.out, page.page(kept.read(folder, acting.HEADS)))
    if args.json:
        print_json([one.model_dump(mode="json") for one in found])
        return 0
    for one in found:
        print(page.page([one]).removeprefix(page.INTRO).strip())
    return 0


def measured(name: str, player: Player, seeds: int, only: str, runs: Kept) -> Measured | None:
    """Measure one agent.

    Parameters
    ----------
    name : str
    player : Player
    seeds : int
    only : str
        What a bar's key must have in it.
    runs : Kept
        Finished runs.

    Returns
    -------
    Measured or None
        None if nothing of this agent was asked for.
    """
    from pipelines.studies import acting
    from pipelines.studies.bars import beyond, judge, kept
    from pipelines.studies.bars.bench import Bench

    bench = Bench(player, seeds, runs)
    bars = [bar for bar in bars_of(bench) if only in bar.key]
    conditions = list(beyond.conditions(bench).items()) if only in BEYOND[0] else []
    fair = only in BEYOND[1]
    if not bars and not conditions and not fair:
        return None
    cleared = [judge.cleared(bar, bar.measure(bench))
               for bar in progress(bars, f"{name}, bars", len(bars))]  # fmt: skip
    outside = [beyond.outside(bench, *one)
               for one in progress(conditions, f"{name}, conditions", len(conditions))]  # fmt: skip
    facts = acting.facts(player)
    words = ["python", "-m", "pipelines.studies.bars.command", "--agent"]
    words += [f"{name}={facts['place']}", "--seeds", str(seeds)]
    return kept.Measured(
        name=name,
        **facts,
        seeds=seeds,
        command=shlex.join(words),
        bars=tuple(cleared),
        conditions=tuple(outside),
        fairness=tuple(beyond.fair(bench)) if fair else (),
    )


def bars_of(bench: Bench) -> list[Bar]:
    """The bars of an agent."""
    from pipelines.studies.bars import macc, nuwa, tcco

    made = {"tcco": tcco.bars, "nuwa": nuwa.bars, "macc": macc.bars}
    policy = bench.player.policy
    return made[policy.environment](policy)


if __name__ == "__main__":
    sys.exit(main())
