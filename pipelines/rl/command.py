"""``cczoo train tcco|nuwa|macc``: train an agent, go on with its training, or search settings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.rl.params import Run
    from models.rl.training import Trained

EXAMPLE = """examples:
  cczoo train macc --set steps=20000 --seeds 3
  cczoo train tcco --resume              # go on where it was stopped, or killed
  cczoo train nuwa --tune 20             # search the settings in 20 trainings
  cczoo train tcco --set env.sampler=mixed_paths --judge 32 --json    # beside policies by hand
  cczoo train tcco --params params.full.yaml --resume --verdict reports/reference/tcco
  cczoo train tcco --start reports/offline/tcco-cql/seed-7    # go on from what logs taught
  RAY_ADDRESS=10.0.0.1:6379 cczoo train macc --set runners=8    # sample on a cluster"""


_JUDGED = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting (see models/rl/params.py), of the environment env.KEY=VALUE; repeat it",
    )
    parser.add_argument(
        "--params",
        type=Path,
        metavar="FILE",
        help="settings, seeds and test episodes: agents.NAME of this file; --set goes on top",
    )
    parser.add_argument("--seeds", type=int, help="trainings, one after the other (default: 1)")
    parser.add_argument("--out", type=Path, help="checkpoints, curves (default: reports/rl/NAME)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument(
        "--start",
        type=Path,
        metavar="FOLDER",
        help="begin with the network of another training, as `cczoo train offline` leaves it: its "
        "sizes, environment and scale of inputs hold, and random actions begin at 0.1, unless "
        "--set says otherwise",
    )
    parser.add_argument(
        "--judge",
        type=int,
        metavar="N",
        help="play N greedy episodes at the end, where there are policies by hand beside them "
        "(default: 16 with --json, else none)",
    )
    parser.add_argument(
        "--verdict",
        type=Path,
        metavar="DIR",
        help="judge the networks beside all that they have to beat, and move them into this folder "
        "with what came of it, which the report shows",
    )
    parser.add_argument("--tune", type=int, default=0, metavar="N", help="search in N trainings")
    parser.add_argument("--no-track", action="store_true", help="send no curves to MLflow")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Train the agent that ``args.task`` names."""
    from data.errors import UserError
    from models.rl import agents
    from pipelines import tracking
    from pipelines.output import print_json
    from pipelines.rl import given
    from pipelines.rl.budget import checked
    from pipelines.rl.changes import changes

    budget, settings = given.budgeted(args, changes(args.set))
    args.seeds = budget.seeds if args.seeds is None else args.seeds
    if args.seeds < 1 or args.tune < 0 or (args.judge or 0) < 0:
        raise UserError("--seeds must be at least 1, --tune and --judge at least 0")
    if args.start is not None and (args.tune or args.verdict is not None):
        raise UserError("--start: of a training alone, without --tune and --verdict")
    if args.verdict is not None and (args.tune or args.task not in agents.AGENTS):
        raise UserError(
            f"--verdict: of a training of {', '.join(agents.AGENTS)} alone, and not of a search"
        )
    if args.start is not None:
        from models.rl import start

        settings = agents.merged(start.settings(args.start, args.task), settings)
    params = agents.settings(args.task, settings)
    out = args.out or Path("reports/rl") / given.folder(args, params)
    if args.verdict is not None:
        from pipelines.rl import judged

        checked(args.task, params)
        judged.check(args, params, out)
    if not args.no_track:
        tracking.check_store()
    if args.tune:
        from pipelines.rl import search

        result = search.best(args.task, settings, args.tune, out)
        whole = True
    else:
        result, whole = _train(args, params, out)
    if whole and args.verdict is not None:
        result["verdict"] = str(judged.judged(args, params, out, result, budget.episodes))
    if args.json:
        print_json(result)
    return 0 if whole else 1


def _train(args: argparse.Namespace, params: Run, out: Path) -> tuple[dict[str, Any], bool]:
    """All seeds, until one is interrupted; a summary, and whether all were done."""
    import numpy as np

    from models.rl import training
    from pipelines.rl import asked
    from pipelines.rl.compared import compared, problem
    from pipelines.rl.cost import counted
    from pipelines.rl.curves import curves
    from pipelines.rl.progress import shown

    where = problem(args.task, params)
    judged = _JUDGED if args.judge is None and args.json else args.judge or 0
    if args.verdict is not None:
        # A verdict has all of that.
        judged = 0
    result: dict[str, Any] = {"name": args.task, "seeds": [], "steps": params.steps,
                              "return": None, "baselines": None, "runs": {}}  # fmt: skip
    whole = True
    with asked.to_stop() as stop:
        for seed in range(params.seed, params.seed + args.seeds):
            one = params.model_copy(update={"seed": seed})
            folder = out / f"seed-{seed}"
            with (
                shown(f"{args.task}, seed {seed}") as show,
                curves(args.task, one, not args.no_track) as log,
                counted(folder) as count,
            ):
                watchers = show, log, count

                def watch(progress: training.Progress, watchers: Any = watchers) -> None:
                    for watcher in watchers:
                        watcher(progress)

                found = training.train(
                    args.task,
                    one,
                    folder,
                    resume=args.resume,
                    watch=watch,
                    stop=stop,
                    judge=0 if where else judged,
                    begin=args.start,
                )
            summary: dict[str, Any] = {
                **_summary(found),
                "judged": float(np.mean(found.judged)) if found.judged else None,
            }
            result["seeds"].append(seed)
            result["runs"][str(seed)] = summary
            whole = found.whole
            if not whole:
                print(f"stopped: go on with --resume ({found.checkpoint})", file=sys.stderr)
                break
            print(f"kept {found.checkpoint}", file=sys.stderr)
    if whole and where and judged:
        result |= compared(where, [out / f"seed-{seed}" for seed in result["seeds"]], judged)
        _report(result)
    return result, whole


def _report(result: dict[str, Any]) -> None:
    """Say how the agent did beside policies by hand."""
    own = result["return"]
    width = "one seed" if own["low"] is None else f"{own['low']:.3f} to {own['high']:.3f}"
    print(f"return of a step: {own['iqm']:.3f} ({width})", file=sys.stderr)
    for kind, best in result["best"].items():
        if best is not None:
            print(f"best {kind}: {result['baselines'][kind]:.3f} ({best})", file=sys.stderr)


def _summary(found: Trained) -> dict[str, Any]:
    last = found.curve[-1]
    return {
        "steps": int(last["steps"]),
        "return": last.get("return"),
        "best_steps": found.best_steps,
        "steps_per_s": found.steps_per_s,
        "checkpoint": str(found.checkpoint),
    }
