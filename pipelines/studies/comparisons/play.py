"""Trains what isn't trained yet of a group, and plays all of it in the same test episodes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from models.rl import agents, checkpoint, training
from models.rl.policy import Greedy
from pipelines.rl import asked
from pipelines.rl.budget import Budget
from pipelines.rl.cost import counted
from pipelines.rl.progress import shown
from pipelines.studies.agents import trainings
from pipelines.studies.agents.publish import DIGITS, FIRST
from pipelines.studies.agents.trainings import Training
from pipelines.studies.comparisons.groups import Group, settings
from pipelines.studies.comparisons.kept import Compared, Entry, Trained
from pipelines.studies.environments import judge

FIRST_SEED = 7


def train(group: Group, budget: Budget, seeds: int, folder: Path) -> bool:
    """Train what isn't finished; returns whether all is.

    Seed by seed, so that what was stopped has as many of each; then, once, those whose rewards are
    their own: their returns can't be compared, and a seed shows how they go.

    Parameters
    ----------
    group : Group
    budget : Budget
    seeds : int
    folder : Path
        Where trainings are kept: ``NAME/seed-N``.
    """
    with asked.to_stop() as stop:
        for seed, name in _order(group, seeds):
            params = agents.settings(name, settings(group, name, budget) | {"seed": seed})
            if not _trained(name, params, folder / name / f"seed-{seed}", stop):
                return False
    return True


def _order(group: Group, seeds: int) -> list[tuple[int, str]]:
    """Seeds and names of all trainings, in the order in which they are done."""
    own = [name for name in group.names if own_reward(name)]
    alike = [name for name in group.names if name not in own]
    every = [(seed, name) for seed in range(FIRST_SEED, FIRST_SEED + seeds) for name in alike]
    return every + [(FIRST_SEED, name) for name in own]


def own_reward(name: str) -> bool:
    """Whether an agent has an environment of its own, so that its returns say nothing of others."""
    return "env" in agents.agent(name).preset


def _trained(name: str, params: Any, folder: Path, stop: Callable[[], bool]) -> bool:
    last = checkpoint.latest(folder)
    if last is not None and int(last.name.removeprefix("checkpoint-")) >= params.steps:
        return True
    with ExitStack() as open_:
        show = open_.enter_context(shown(f"{name}, seed {params.seed}"))
        count = open_.enter_context(counted(folder))

        def watch(progress: training.Progress) -> None:
            show(progress)
            count(progress)

        found = training.train(name, params, folder, resume=True, watch=watch, stop=stop)
    if not found.whole:
        print(f"stopped: the same command goes on ({found.checkpoint})", file=sys.stderr)
    return found.whole


def played(label: str, group: Group, budget: Budget, folder: Path, episodes: int) -> Compared:
    """All finished trainings of a group in the test episodes.

    Parameters
    ----------
    label : str
        The group's name.
    group : Group
    budget : Budget
    folder : Path
    episodes : int
    """
    entries = {}
    for name in group.names:
        found = trainings.finished(folder / name, name)
        if found:
            sampler = settings(group, name, budget)["env"].get("sampler", "dumbbell")
            entries[name] = Entry(
                settings=found[0].settings,
                own_reward=own_reward(name),
                seeds={str(one.seed): _played(group, one, sampler, episodes) for one in found},
            )
    return Compared(group=label, episodes=episodes, entries=entries)


def _played(group: Group, one: Training, sampler: str, episodes: int) -> Trained:
    line = agents.agent(one.agent)
    env = {key: value for key, value in one.settings["env"].items()
           if key not in line.training_only}  # fmt: skip
    maker: judge.Maker = partial(judge.alone, line.maker, env)
    if not own_reward(one.agent):
        maker = judge.by_hand(group.agent, sampler)[0][2]
    row = (one.agent, judge.AGENT, maker, partial(Greedy, one.module))
    found = judge.play(row, episodes, seed=FIRST)
    batch = maker(1)
    length = batch.steps
    batch.close()
    points = [point for point in one.curve if "validation" in point]
    return Trained(
        returns=[_short(value) for value in found.returns],
        mbps=_short(found.mbps.mean()),
        rtt_ms=_short(found.rtt_ms.mean()),
        cpu_s=None if one.cost is None else round(one.cost.cpu_s, 1),
        steps=[int(point["steps"]) for point in points],
        validation=[_short(point["validation"] / length) for point in points],
    )


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
