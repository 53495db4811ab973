"""`cczoo lab drive`: a policy drives live connections (tcco.txt section III.A; Figs. 12 to 14)."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.drive.tasks import Task

SCENARIOS = ("drive-dual", "drive-loss", "drive-fct", "drive-one", "drive-senders", "drive-shared")
CONTROLS = "agent,reno,cubic,bbr,lia"
LOG = "drive.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        "policy",
        help="a bundle or zoo entry of a policy that sets windows, tracking:1.25, or nuwa-tanh",
    )
    parser.add_argument(
        "--scenario", default="drive-dual", help=f"one or more, by commas: {', '.join(SCENARIOS)}"
    )
    parser.add_argument(
        "--cc",
        default=CONTROLS,
        help="by commas: agent, agent+5ms (an engine that far away), tree (inside the control), "
        "nuwa (the receiver sets the window), nuwa-tree (a tree chooses its k), reno, cubic, bbr, "
        "lia, mpcdg; each with @aqm behind it has --queue run the bottleneck's queue "
        "(default: %(default)s)",
    )
    parser.add_argument("--queue", help="bundle of a tree that runs queues, as macc-aqm-tree does")
    parser.add_argument("--sites", help="only these of the scenario's, by commas")
    parser.add_argument("--repeats", type=int, help="of each site (default: the scenario's)")
    parser.add_argument("--duration", type=float, help="of a run in s (default: the scenario's)")
    parser.add_argument("--out", type=Path, required=True, help="folder for records and tables")
    parser.add_argument("--simulate", action="store_true", help="the same in the simulator too")
    parser.add_argument("--gain", type=float, default=7.0, help="nuwa: k (default 7)")
    parser.add_argument("--target-ms", type=float, default=50.0, help="nuwa: T_d (default 50)")
    parser.add_argument(
        "--tries", type=int, default=3, help="how often in all a run is tried that the host spoils"
    )
    parser.add_argument("--slot", type=int, default=80, help="number of the lab (default 80)")


def run(args: argparse.Namespace) -> int:
    """Do the runs not yet in ``<out>/drive.jsonl``, then sum up; 1 if one is missing."""
    from data.errors import UserError
    from data.lab.process import LabError
    from data.lab.runs import resume
    from models.drive.policies import driving
    from pipelines.drive import summary, tables
    from pipelines.drive.tasks import AQM, behind_ms, policy_of
    from pipelines.output import print_json

    if os.geteuid():
        raise UserError("the lab needs root for network namespaces; run it with sudo")
    asked = tasks(args)
    if any(task.control.endswith(AQM) for task in asked) and args.queue is None:
        raise UserError(f"{AQM} needs --queue: a bundle of a tree that runs queues")
    # Neither a receiver nor a tree in the control asks an engine.
    driven = any(behind_ms(task.control) is not None for task in asked)
    chosen = driving(args.policy) if driven else None
    name = chosen.name if chosen else args.policy
    args.out.mkdir(parents=True, exist_ok=True)
    log = args.out / LOG
    records = resume(log)
    todo = [task for task in asked if _key(task, name, args.queue) not in _done(records)]
    if todo:
        try:
            _carry_out(todo, args, chosen, log)
        except LabError as error:
            raise UserError(f"{error}; run: cczoo lab doctor") from None
        records = resume(log)
    own = {policy_of(task.control, name, args.queue) for task in asked}
    mine = [r for r in records if r["policy"] in own | {name, None}]
    found = {"kernel": platform.release(), "policy": name, **summary.summarise(mine)}
    text = json.dumps(found, indent=1)
    (args.out / "summary.json").write_text(f"{text}\n", encoding="utf-8")
    if args.json:
        print_json(found)
    else:
        print(tables.markdown(found))
    missing = [task for task in asked if _key(task, name, args.queue) not in _done(records)]
    for task in missing:
        print(f"no valid run: {task.name}", file=sys.stderr)
    return 1 if missing else 0


Key = tuple[str, str, str, int, str | None]


def _key(task: Task, name: str, queue: str | None) -> Key:
    from pipelines.drive.tasks import policy_of

    policy = policy_of(task.control, name, queue)
    return task.scenario, task.site, task.control, task.repeat, policy


def _done(records: list[dict[str, Any]]) -> set[Key]:
    return {
        (r["scenario"], r["site"], r["control"], r["repeat"], r["policy"])
        for r in records
        if r["valid"]
    }


def _carry_out(todo: list[Task], args: argparse.Namespace, chosen: Any, log: Path) -> None:
    from contextlib import ExitStack
    from dataclasses import replace

    from data.lab import follow, receiver, runs
    from export.bpf.live import statistics
    from models.drive.policies import is_scripted
    from pipelines.drive.inside import INSIDE, inside_policy, receiver_table
    from pipelines.drive.others import queue_tree, receiver_tree
    from pipelines.drive.played import Playing
    from pipelines.drive.runs import Means, carry_out, engine
    from pipelines.drive.simulated import simulated
    from pipelines.drive.tasks import AQM, NUWA, NUWA_TREE, TREE, behind_ms, policy_of
    from pipelines.output import progress

    playing = Playing(None if is_scripted(args.policy) else args.policy, args.queue)
    name = chosen.name if chosen else args.policy
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cczoo-drive-")))
        stack.enter_context(statistics())
        means = Means(gain=args.gain, target_ms=args.target_ms)
        asked = {task.sending for task in todo}
        if any(task.control.endswith(AQM) for task in todo):
            means = replace(means, queue=queue_tree(args.queue, work))
        if any(behind_ms(control) is not None for control in asked):
            control = stack.enter_context(follow.loaded(chosen.settings(), work))
            where = stack.enter_context(engine(chosen, args.policy, work))
            means = replace(means, control=control, engine=where)
        if TREE in asked:
            settings, header = inside_policy(args.policy, work)
            inside = follow.loaded(settings, work, INSIDE, header)
            means = replace(means, inside=stack.enter_context(inside))
        if NUWA in asked:
            means = replace(means, receiver=receiver.compiled(receiver_table(args.policy), work))
        if NUWA_TREE in asked:
            table, own = receiver_table(args.policy), work / NUWA_TREE
            own.mkdir()
            tuned = receiver.compiled(table, own, *receiver_tree(args.policy, own))
            means = replace(means, tuned=tuned)
        for task in progress(todo, "driving", len(todo)):
            for _ in range(args.tries):
                kept = carry_out(task, args.out, args.slot, means)
                kept["policy"] = policy_of(task.control, name, args.queue)
                if args.simulate and kept["valid"]:
                    kept["simulated"] = simulated(kept, playing)
                runs.append(log, kept)
                if kept["valid"]:
                    break
                why = kept.get("error") or ", ".join(kept["reasons"])
                print(f"{task.name}: invalid ({why})", file=sys.stderr, flush=True)


def tasks(args: argparse.Namespace) -> list[Task]:
    """All runs asked for; the controls of one repeat share its seed and follow each other.

    Raises
    ------
    UserError
        When a scenario, site or congestion control is unknown.
    """
    from data.errors import unknown_name
    from data.lab import plan
    from pipelines.drive.tasks import AQM, KERNEL_CONTROLS, NUWA, NUWA_TREE, TREE, Task, behind_ms

    controls, own = args.cc.split(","), (TREE, NUWA, NUWA_TREE, *KERNEL_CONTROLS)
    for control in controls:
        if behind_ms(control) is None and control.removesuffix(AQM) not in own:
            raise unknown_name("congestion control", control, ("agent", "agent+5ms", *own))
    found: list[Task] = []
    for scenario in args.scenario.split(","):
        if scenario not in SCENARIOS and not Path(scenario).is_file():
            raise unknown_name("driven scenario", scenario, SCENARIOS)
        campaign = plan.load(scenario)
        sources = {source.name: source for source in plan.sources(campaign)}
        sites = args.sites.split(",") if args.sites else list(sources)
        for site in sites:
            if site not in sources:
                raise unknown_name("site", site, sources)
        for repeat in range(args.repeats or max(sources[site].target for site in sites)):
            for site in sites:
                seed = plan.seed_of(campaign, site, repeat)
                drawn = sources[site].draw(seed)
                if args.duration:
                    drawn = drawn.model_copy(update={"duration_s": args.duration})
                name = campaign.campaign
                found += [Task(name, site, one, repeat, seed, drawn) for one in controls]
    return found
