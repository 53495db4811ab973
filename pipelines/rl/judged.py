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

from data.place import building, check_own, check_writable
from models.rl.training import CURVE as LEARNED
from pipelines.rl import judging
from pipelines.rl.cost import COST
from pipelines.rl.results import CURVE, TRAJECTORY, VERDICT, Verdict
from pipelines.rl.trajectory import trajectory
from pipelines.rl.verdict import verdict

if TYPE_CHECKING:
    from models.rl.params import Run

MAKER = "cczoo train --verdict"
POINTS = 300
"""Points of a curve, at most, beside those of validations."""


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
        The command's summary; its checkpoints get the place that they move to.
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
    found = judge_into(args.verdict, args.task, params, folders, steps, args.judge or episodes)
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
) -> Verdict:
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
    Verdict

    Raises
    ------
    UserError
        When `out` holds what this didn't write.
    """
    with building(out, own, MAKER) as fresh:
        results = judging.play_all(name, params, folders, episodes)
        facts = {
            "agent": name,
            "sampler": judging.sampler_of(name, params),
            "seeds": [params.seed + i for i in range(len(folders))],
            "steps": params.steps,
            "cpu_s": sum(COST.read(folder).cpu_s for folder in folders),
            "best_steps": list(best_steps),
            "settings": params.model_dump(mode="json", by_alias=True, exclude={"seed"}),
        }
        found = VERDICT.write(fresh, verdict(results, facts))
        CURVE.write(fresh, curve(name, params, folders[0], results))
        TRAJECTORY.write(fresh, trajectory(name, folders[0]))
        for folder in folders:
            shutil.copytree(folder, fresh / folder.name, ignore=shutil.ignore_patterns(".lock"))
    for folder in folders:
        shutil.rmtree(folder)
        with suppress(OSError):
            folder.parent.rmdir()
    return found


def check(out: Path) -> None:
    """Refuse a folder for a verdict before anything is trained for it.

    Raises
    ------
    UserError
        When it can't be written, or holds what isn't of a verdict.
    """
    check_writable(out)
    check_own(out, own, MAKER)


def own(folder: Path) -> set[str]:
    """Names of what belongs to a verdict in its folder: result files, and all of the trainings."""
    if not (folder / VERDICT.name).is_file():
        return set()
    below = (path for one in folder.glob("seed-*") for path in one.rglob("*"))
    found = {path.relative_to(folder).as_posix() for path in below}
    return found | {file.name for file in (VERDICT, CURVE, TRAJECTORY)}


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
