"""Trains online from nothing, and from what logs taught until that does as well."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.rl import agents, checkpoint, start, training
from models.rl.params import Run
from pipelines.rl import asked
from pipelines.rl.progress import shown
from pipelines.studies.offline.kept import EPISODE, ONLINE, SAMPLER, SCRATCH, Tuned, Tuning

_SIZES = ("subflow_width", "width", "heads", "layers", "context", "logs")
COMMON: dict[str, Any] = {
    "num_envs": 16,
    "update_every": 8,
    "epsilon_steps": 3_000,
    "target_every": 500,
    "validation_episodes": 8,
    "report_every": 500,
}
"""Settings of all of them."""
FROM_NOTHING: dict[str, Any] = {"warmup": 1_000, "learning_starts": 500}
"""And of those from nothing: others begin with `models.rl.start.CALM`."""


def settings(begin: Path | None, seed: int, steps: int, every: int, like: Mapping[str, Any]) -> Run:
    """Settings of an online training.

    Parameters
    ----------
    begin : Path, optional
        What it begins with.
    seed, steps, every : int
        Steps, and from one validation to the next.
    like : mapping
        Settings of the trainings from logs, whose sizes all networks have.
    """
    env = {"sampler": SAMPLER, "params": {"subflows": like["subflows"], "steps": EPISODE}}
    own = COMMON | {"seed": seed, "steps": steps, "validate_every": every, "env": env}
    if begin is None:
        sizes = {key: like[key] for key in _SIZES}
        return agents.settings(ONLINE, FROM_NOTHING | sizes | own)
    return agents.settings(ONLINE, agents.merged(start.settings(begin, ONLINE), own))


def tuned(
    folders: Mapping[str, Mapping[int, Path]], out: Path, steps: int, every: int
) -> Tuning | None:
    """Train what isn't trained yet, seed by seed; None if it was asked to stop.

    Parameters
    ----------
    folders : mapping
        Method -> seed -> training from logs.
    out : Path
        Where online trainings are kept: ``METHOD/seed-N``.
    steps, every : int
        A training from nothing takes so many, and one validation is so many after the other.
    """
    curves: dict[str, dict[str, Tuned]] = {}
    with asked.to_stop() as stop:
        for seed in next(iter(folders.values())):
            target: float | None = None
            for name in (SCRATCH, *folders):
                begin = None if name == SCRATCH else folders[name][seed]
                like = _settings(next(iter(folders.values()))[seed])
                params = settings(begin, seed, steps, every, like)
                folder = out / name / f"seed-{seed}"
                found = _trained(f"{name}, seed {seed}", params, folder, begin, target, stop)
                if found is None:
                    return None
                curves.setdefault(name, {})[str(seed)] = found
                if begin is None:
                    target = found.end
    return Tuning(steps=steps, every=every, curves=curves)


def _settings(folder: Path) -> dict[str, Any]:
    found = checkpoint.latest(folder)
    assert found is not None
    tree: dict[str, Any] = checkpoint.read(found)["offline"]["settings"]
    return tree


def _trained(
    what: str, params: Run, folder: Path, begin: Path | None, target: float | None, stop: Any
) -> Tuned | None:
    """Train to the end, or until the target is reached; None if it was asked to stop."""
    there = _curve(folder)
    if _over(there, params.steps, target):
        return there
    ended = False

    def watch(progress: training.Progress) -> None:
        nonlocal ended
        show(progress)
        value = progress.point.get("validation")
        ended = ended or (target is not None and value is not None and value / EPISODE >= target)

    with shown(what) as show:
        training.train(ONLINE, params, folder, resume=True, watch=watch, begin=begin,
                       stop=lambda: ended or stop())  # fmt: skip
    found = _curve(folder)
    return found if _over(found, params.steps, target) else None


def _over(one: Tuned, steps: int, target: float | None) -> bool:
    if target is not None and one.reached(target) is not None:
        return True
    return bool(one.steps) and one.steps[-1] >= steps


def _curve(folder: Path) -> Tuned:
    path = folder / training.CURVE
    if checkpoint.latest(folder) is None or not path.is_file():
        return Tuned(steps=[], validation=[])
    points: Sequence[dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    judged = [point for point in points if "validation" in point]
    return Tuned(
        steps=[int(point["steps"]) for point in judged],
        validation=[float(f"{point['validation'] / EPISODE:.7g}") for point in judged],
    )
