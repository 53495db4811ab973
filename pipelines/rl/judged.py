"""Judge finished trainings: a folder with their verdict, curve, trajectory and networks."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.place import building, check_own, check_writable
from models.rl.training import CURVE as LEARNED
from pipelines.rl import judging
from pipelines.rl.compared import summary
from pipelines.rl.cost import COST
from pipelines.rl.results import CURVE, FOLDER, TRAJECTORY, VERDICT, Verdict
from pipelines.rl.trajectory import trajectory
from pipelines.rl.verdict import verdict

if TYPE_CHECKING:
    from models.rl.params import Run

MAKER = "cczoo train --verdict"
POINTS = 300
"""Points of a curve, about, beside those of validations."""
_FEWEST = 4
"""Episodes of a verdict: with fewer an interval says nothing."""
PARAMS = "params.yaml"
"""The pipeline's own budgets."""


def judged(
    args: argparse.Namespace, params: Run, out: Path, result: dict[str, Any], episodes: int
) -> Path:
    """Judge what a command has trained, and print the verdict.

    Parameters
    ----------
    args : argparse.Namespace
        The command line of ``cczoo train``.
    params : Run
    out : Path
        Folder of the trainings.
    result : dict
        The command's summary; its checkpoints get the place that they move to, and it what the
        agents and the policies by hand got.
    episodes : int
        Test episodes, if ``--judge`` doesn't say.

    Returns
    -------
    Path
        The file of the verdict.
    """
    runs = [result["runs"][str(seed)] for seed in result["seeds"]]
    folders = [out / f"seed-{seed}" for seed in result["seeds"]]
    steps = [run["best_steps"] for run in runs]
    given = args.judge or episodes
    found, summed = judge_into(args.verdict, args.task, params, folders, steps, given)
    result |= summed
    for run, one in zip(runs, folders, strict=True):
        run["checkpoint"] = str(args.verdict / one.name / Path(run["checkpoint"]).name)
    print("\n  ".join(found.text), file=sys.stderr)
    return Path(args.verdict, VERDICT.name)


def judge_into(
    out: Path,
    name: str,
    params: Run,
    folders: Sequence[Path],
    best_steps: Sequence[int],
    episodes: int,
) -> tuple[Verdict, dict[str, Any]]:
    """Judge the trainings of one agent, and move them into the folder of what came of it.

    Parameters
    ----------
    out : Path
        Folder to make, or to replace if it is one of these; it is made whole or not at all.
    name : str
        Agent.
    params : Run
        Settings of the first seed's training.
    folders : sequence of Path
        Trainings, a seed each.
    best_steps : sequence of int
        Steps after which the network of each was the best.
    episodes : int
        Test episodes.

    Returns
    -------
    verdict : Verdict
    summary : dict
        As `pipelines.rl.compared.summary` gives it.

    Raises
    ------
    UserError
        When `out` holds what this didn't write.
    """
    with building(out, own, MAKER) as fresh:
        costs = [COST.read(folder) for folder in folders]
        results, seeds = judging.play_all(name, params, folders, episodes)
        facts = {
            "agent": name,
            "sampler": judging.sampler_of(name, params),
            "seeds": [params.seed + i for i in range(len(folders))],
            "steps": params.steps,
            "cpu_s": sum(cost.cpu_s for cost in costs),
            "command": costs[0].command,
            "best_steps": list(best_steps),
            "settings": params.model_dump(mode="json", by_alias=True, exclude={"seed"}),
        }
        found = VERDICT.write(fresh, verdict(results, facts, seeds))
        CURVE.write(fresh, curve(name, params, folders[0], results))
        TRAJECTORY.write(fresh, trajectory(name, folders[0]))
        for folder in folders:
            shutil.copytree(folder, fresh / folder.name, ignore=shutil.ignore_patterns(".lock"))
    for folder in folders:
        shutil.rmtree(folder)
        with suppress(OSError):
            folder.parent.rmdir()
    return found, summary(results, seeds)


def check(args: argparse.Namespace, params: Run, out: Path) -> None:
    """Refuse a verdict before anything is trained for it.

    Parameters
    ----------
    args : argparse.Namespace
        The command line of ``cczoo train``.
    params : Run
    out : Path
        Folder of the trainings, which move from there.

    Raises
    ------
    UserError
        When its folder can't be written, holds what isn't of a verdict, is the pipeline's own, or
        overlaps the trainings'; when there are too few episodes, or no measured traces to judge on.
    """
    place = Path(args.verdict)
    if args.judge is not None and args.judge < _FEWEST:
        raise UserError(f"--judge {args.judge}: a verdict takes at least {_FEWEST} episodes")
    inside, outside = place.resolve(), out.resolve()
    if inside.is_relative_to(outside) or outside.is_relative_to(inside):
        raise UserError(f"--verdict {place}: trainings move there from {out}: give another folder")
    by_file = args.params is not None and args.params.name == PARAMS and not args.set
    if inside == Path("reports", FOLDER, args.task).resolve() and not by_file:
        raise UserError(
            f"--verdict {place}: `dvc repro` makes that by {PARAMS}, and would delete what has "
            f"other settings: give another folder, as reports/reference/{args.task}"
        )
    check_writable(place)
    check_own(place, own, MAKER)
    judging.by_hand(args.task, params)


def own(folder: Path) -> set[str]:
    """Names of what belongs to a verdict in its folder: result files, and those of trainings."""
    if not (folder / VERDICT.name).is_file():
        return set()
    found = {file.name for file in (VERDICT, CURVE, TRAJECTORY)}
    for one in folder.glob("seed-*"):
        below = [one / COST.name, one / LEARNED, *one.glob("checkpoint-*")]
        below += [file for kept in one.glob("checkpoint-*") for file in kept.iterdir()]
        found |= {path.relative_to(folder).as_posix() for path in below}
    return found


def curve(name: str, params: Run, folder: Path, results: Sequence[Any]) -> dict[str, Any]:
    """Content of ``curve.json``; see `pipelines.rl.results.Curve`."""
    points = json.loads((folder / LEARNED).read_text(encoding="utf-8"))
    every = max(1, len(points) // POINTS)
    steps = judging.episode_steps(name, params)
    shown = [point for i, point in enumerate(points) if i % every == 0 or "validation" in point]
    return {
        "seed": params.seed,
        "points": [_point(one, steps) for one in shown],
        "levels": judging.levels(name, params, results),
    }


def _point(one: Mapping[str, Any], steps: int) -> dict[str, Any]:
    validation = one.get("validation")
    return {
        "steps": int(one["steps"]),
        "reward": one.get("reward"),
        "validation": None if validation is None else validation / steps,
    }
