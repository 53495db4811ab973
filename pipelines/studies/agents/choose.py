"""Says which of several trainings to release: the one that does best in validation episodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from data.errors import UserError
from models.rl.policy import Greedy
from pipelines.output import progress
from pipelines.studies.agents import publish, trainings
from pipelines.studies.environments import judge

COMMON = publish.FIRST + 1
"""Seed of episodes that neither training nor test draws, and that are the same for all trainings.
Each training's own validation has episodes of its own, so that figures of two can't be compared."""


def choose(agent: str, trained: Path, episodes: int) -> list[dict[str, Any]]:
    """Play every finished training's best network in the same validation episodes.

    Parameters
    ----------
    agent : str
    trained : Path
        Folder of ``seed-N``.
    episodes : int

    Returns
    -------
    list of dict
        ``seed``, ``return`` (mean of a step), ``folder``; the best one first.

    Raises
    ------
    UserError
        When no training is finished there.
    """
    found = trainings.finished(trained, agent)
    if not found:
        raise UserError(f"{trained}: no finished training: `cczoo train {agent} --seeds 10` first")
    maker = judge.PROBLEMS[publish.problem_of(agent, found[0])][0][2]
    rows = []
    for one in progress(found, "playing seeds", len(found)):
        row = f"seed {one.seed}", judge.AGENT, maker, partial(Greedy, one.module)
        value = float(judge.play(row, episodes, seed=COMMON).returns.mean())
        folder = str(trained / f"seed-{one.seed}")
        rows.append({"seed": one.seed, "return": value, "folder": folder})
    return sorted(rows, key=lambda one: -float(one["return"]))


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each training, and what releases the best."""
    return [
        *(f"seed {one['seed']}: {one['return']:.4f} a step" for one in rows),
        f"cczoo zoo release {rows[0]['folder']}",
    ]
