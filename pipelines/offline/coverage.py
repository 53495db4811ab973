"""``cczoo offline coverage``: where logged decisions lie, and which conclusions they don't bear."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.output import print_json, progress

if TYPE_CHECKING:
    from data.decisions.run import Run
    from models.offline.regions import Question
    from models.offline.support import Held, Support

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
    from models.offline.regions import Question
    from models.offline.support import Support
    from pipelines.offline import plot

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
    runs, aside = _sides(args)
    support = Support.of(progress(runs, "counting"), len(about.actions), questions)
    held = _held(args, support, aside)
    refused = [why for one in questions if (why := support.lack(one, args.least))]
    refused += [why for what, one in held.items() if (why := _refusal(what, one, args))]
    if args.plot is not None:
        plot.write(args.plot, support, [f"{action:+g}" for action in about.actions])
    if args.json:
        print_json(_plain(support, held, questions, refused))
    else:
        _print(support, held, questions, [f"{action:+g}" for action in about.actions])
    for why in refused:
        print(f"refused: {why}", file=sys.stderr)
    return 1 if refused else 0


def _sides(args: argparse.Namespace) -> tuple[Iterable[Run], Iterable[Run]]:
    """Runs that count as logs, and those that an agent learned nothing from."""
    from data.decisions import files

    if args.agent is None:
        return files.runs(args.decisions), ()
    source = _source(args)
    return source.runs(False), source.runs(True)


def _source(args: argparse.Namespace) -> Any:
    from models.offline.acting import settings_of
    from models.offline.params import Evaluation
    from models.offline.source import Source
    from pipelines.offline.given import evaluation

    settings: Evaluation = evaluation(settings_of(args.agent), {})
    return Source(args.decisions, settings)


def _held(args: argparse.Namespace, support: Support, aside: Iterable[Run]) -> dict[str, Held]:
    """Decisions held against the logs: those of the agent where it is judged, and others'."""
    from data.decisions import files
    from models.offline.support import Held

    found: dict[str, Held] = {}
    judged = {"runs set aside": aside} if args.agent is not None else {}
    if args.on is not None:
        judged = {str(args.on): files.runs(args.on)}
    actions_in = _acting(args) if args.agent is not None else lambda run: None
    for what, runs in judged.items():
        found[what] = Held(support, args.least)
        for run in progress(runs, "judging"):
            found[what].add(run.observation, actions_in(run))
    for name in filter(None, args.scenario.split(",")):
        found[name] = _played(str(args.agent), name, Held(support, args.least))
    return found


def _acting(args: argparse.Namespace) -> Callable[[Run], Any]:
    """What tells an agent's actions along a run; None if it has too many subflows."""
    from models.offline.acting import opened
    from models.one_thread import one_thread

    policy, source = opened(args.agent), _source(args)

    def actions(run: Run) -> Any:
        if run.subflows > source.settings.subflows:
            return None
        with one_thread():
            return policy.along(run, source)[:, : run.subflows].argmax(-1).numpy()

    return actions


def _played(agent: str, name: str, held: Held) -> Held:
    """What the agent meets and does where it plays itself."""
    from data.netsim import scenario
    from models.closedloop import player

    def watch(batch: Any, actions: Any) -> None:
        for i in range(batch.num_envs):
            there = batch.mask[i]
            held.add(batch.values[i][None, there], actions[i][None, there])

    own = player(agent)
    for spec in scenario.load(name).values():
        own.play([(spec, 0)], watch)
    return held


def _refusal(what: str, held: Held, args: argparse.Namespace) -> str | None:
    found = held.plain()
    if found["outside"] > args.allow:
        return f"{100 * found['outside']:.1f} % of the decisions in {what}: {found['where']}"
    if found["rare_action"] > args.allow:
        return (
            f"{100 * found['rare_action']:.1f} % of its decisions in {what}: the logs hold fewer "
            f"than {args.least} decisions of that action in their regions"
        )
    return None


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
