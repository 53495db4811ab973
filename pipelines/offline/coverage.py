"""``cczoo offline coverage``: where logged decisions lie, and which conclusions they don't bear."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import print_json, progress

if TYPE_CHECKING:
    from models.offline.held import Held
    from models.offline.questions import Question
    from models.offline.support import Support

EXAMPLE = """examples:
  cczoo offline coverage --decisions build/decisions.parquet --plot build/coverage.svg
  cczoo offline coverage --decisions data/mine --ask "snd_cwnd > 200 and base_rtt_ms > 100"
  cczoo offline coverage --decisions data/mine --agent reports/offline/tcco-iql/seed-7 --json
  cczoo offline coverage --decisions data/mine --agent mine/seed-7 --scenario tcco-fig9a
  cczoo offline coverage --decisions data/mine --on data/others

axes of --ask: snd_cwnd (segments), base_rtt_ms, bottleneck_mbps, rtt_ratio (RTT over base RTT),
subflows
exit status 1: a conclusion is refused, since the logs don't hold what it would rest on"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    from models.offline.support import LEAST

    parser.add_argument(
        "--decisions", type=Path, required=True, help="a file of decisions, or a folder of them"
    )
    parser.add_argument(
        "--agent", metavar="FOLDER", type=Path,
        help="what cczoo train left: its actions in the runs that it learned nothing from",
    )  # fmt: skip
    parser.add_argument(
        "--on", type=Path, metavar="DECISIONS", help="decisions that somebody is to be judged on"
    )
    parser.add_argument(
        "--scenario", default="", metavar="NAMES",
        help="with --agent: simulated scenarios that it is to be judged in, with commas",
    )  # fmt: skip
    parser.add_argument(
        "--ask", action="append", default=[], metavar="QUESTION",
        help="whether the logs bear a conclusion; repeat it",
    )  # fmt: skip
    parser.add_argument(
        "--least", type=int, default=LEAST, help="decisions that are enough (default %(default)s)"
    )
    parser.add_argument(
        "--allow", type=float, default=0.05, metavar="SHARE",
        help="share of decisions without support that is let pass (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--plot", type=Path, help="write a figure (.svg or .png)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Count, report, and refuse what has no support."""
    from data.decisions import files
    from data.errors import UserError
    from models.offline.questions import Question
    from models.offline.support import Support
    from pipelines.offline import judged, plot

    if args.least < 1 or not 0 <= args.allow <= 1:
        raise UserError("--least: give 1 or more; --allow: a share from 0 to 1")
    if args.scenario and args.agent is None:
        raise UserError("--scenario: say with --agent who is to play there")
    if args.plot is not None:
        plot.check(args.plot)
    about = files.about(args.decisions)
    if about.agent != "tcco":
        raise UserError(f"{args.decisions}: decisions of {about.agent}: regions are those of what "
                        "TCCO's agent observes")  # fmt: skip
    questions = [Question.read(text) for text in args.ask]
    runs, aside = judged.sides(args)
    support = Support.of(progress(runs, "counting"), len(about.actions), questions)
    held = judged.held(args, support, aside)
    refused = [why for one in questions if (why := support.lack(one, args.least))]
    refused += [why for what, one in held.items() if (why := judged.refusal(what, one, args))]
    if args.plot is not None:
        plot.write(args.plot, support, [f"{action:+g}" for action in about.actions])
    if args.json:
        print_json(_plain(support, held, questions, refused))
    else:
        _print(support, held, questions, [f"{action:+g}" for action in about.actions])
    for why in refused:
        print(f"refused: {why}", file=sys.stderr)
    return 1 if refused else 0


def _plain(
    support: Support, held: dict[str, Held], questions: Sequence[Question], refused: list[str]
) -> dict[str, Any]:
    from models.offline.regions import AXES
    from models.offline.support import TABLES

    return {
        "decisions": int(support.decisions.sum()),
        "runs": support.total_runs,
        "behaviours": {name: int(one.sum()) for name, one in support.behaviours.items()},
        "tables": {" ".join(AXES[i].name for i in axes): support.table(axes) for axes in TABLES},
        "gaps": support.gaps(),
        "regions": support.regions(),
        "asked": [
            {"question": one.words(), "decisions": support.questions[one][0],
             "runs": support.questions[one][1]} for one in questions
        ],
        "judged": {what: one.plain() for what, one in held.items()},
        "refused": refused,
    }  # fmt: skip


def _print(
    support: Support, held: dict[str, Held], questions: Sequence[Question], actions: Sequence[str]
) -> None:
    from models.offline.support import TABLES

    whose = {name: int(one.sum()) for name, one in support.behaviours.items()}
    print(
        f"{int(support.decisions.sum())} decisions of {support.total_runs} runs: "
        f"{', '.join(f'{count} of {name}' for name, count in sorted(whose.items()))}"
    )
    for axes in TABLES[:-1]:
        print(f"\n{'':<46}{'decisions':>10}{'runs':>7}{'controls':>9}"
              + "".join(f"{name:>9}" for name in actions))  # fmt: skip
        for row in support.table(axes):
            print(f"{row['region']:<46}{row['decisions']:>10}{row['runs']:>7}"
                  f"{len(row['behaviours']):>9}"
                  + "".join(f"{count:>9}" for count in row["actions"]))  # fmt: skip
    if gaps := support.gaps():
        print("\nno decision:")
        for words in gaps:
            print(f"  {words}")
    for one in questions:
        decisions, runs = support.questions[one]
        print(f"\n{one.words()}: {decisions} decisions of {runs} runs")
    for what, each in held.items():
        found = each.plain()
        print(
            f"\n{what}: {found['decisions']} decisions, {100 * found['outside']:.1f} % where the "
            f"logs hold fewer than {each.least}, {100 * found['rare_action']:.1f} % with an "
            "action of which they do there"
        )
