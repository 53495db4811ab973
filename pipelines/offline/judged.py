"""Hold decisions against what logs support: an agent's, others', or those that it takes in play."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pipelines.output import progress

if TYPE_CHECKING:
    from data.decisions.run import Run
    from models.offline.held import Held
    from models.offline.support import Support


def sides(args: argparse.Namespace) -> tuple[Iterable[Run], Iterable[Run]]:
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


def held(args: argparse.Namespace, support: Support, aside: Iterable[Run]) -> dict[str, Held]:
    """Decisions held against the logs: those of the agent where it is judged, and others'."""
    from data.decisions import files
    from models.offline.held import Held

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


def refusal(what: str, held: Held, args: argparse.Namespace) -> str | None:
    """Why nothing can be concluded from decisions, in a sentence; None if it can."""
    found = held.plain()
    if found["outside"] > args.allow:
        return f"{100 * found['outside']:.1f} % of the decisions in {what}: {found['where']}"
    if found["rare_action"] > args.allow:
        return (
            f"{100 * found['rare_action']:.1f} % of its decisions in {what}: the logs hold fewer "
            f"than {args.least} decisions of that action in their regions"
        )
    return None
