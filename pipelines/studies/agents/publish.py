"""Plays trainings and policies by hand in the same test episodes, and keeps what they get."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from models.policies.card import training as command
from models.rl import agents
from models.rl.policy import Greedy
from pipelines.output import progress
from pipelines.rl.compared import problem
from pipelines.studies.agents import kept, trainings
from pipelines.studies.agents.kept import Played, Published, Seed
from pipelines.studies.agents.statistics import KINDS, statistics
from pipelines.studies.agents.trainings import Training
from pipelines.studies.environments import judge

EPISODES = 32
FIRST = 1 << 31
"""Test episodes' seed: training and validation draw theirs below it, so that they see none."""
DIGITS = 7


def publish(
    agent: str, trained: Path, folder: Path, episodes: int | None = None, again: bool = False
) -> Published:
    """Add finished trainings to what is published of an agent.

    What was played already isn't played again: seeds are added one by one.

    Parameters
    ----------
    agent : str
    trained : Path
        Folder of ``seed-N``.
    folder : Path
        Where the figures are.
    episodes : int, optional
        By default as many as are published, or 32.
    again : bool
        Play everybody again, after a change of the simulator.

    Returns
    -------
    Published

    Raises
    ------
    UserError
        When there are fewer than two seeds, they can't be compared, or one has to be played of
        which there is no training.
    """
    found = trainings.finished(trained, agent)
    file = kept.file(agent)
    before = file.read(folder) if (folder / file.name).is_file() else None
    if before is not None and found:
        trainings.alike(before.settings, found[0].settings, str(trained))
    if not found:
        raise UserError(f"{trained}: no finished training: `cczoo train {agent} --seeds 10` first")
    count = episodes or (before.episodes if before else EPISODES)
    where = problem_of(agent, found[0])
    same = before is not None and (before.episodes, before.problem) == (count, where)
    old = before if same and not again else None
    _whole(before, old, found, trained)
    by_hand = old.by_hand if old else _by_hand(where, count)
    seeds = _seeds(old, found, where, count)
    if len(seeds) < 2:
        raise UserError(f"{trained}: one finished seed: statistics need at least two")
    settings = found[0].settings
    published = Published(
        agent=agent,
        problem=where,
        settings=settings,
        command=commands(agent, settings, sorted(map(int, seeds))),
        episodes=count,
        first=FIRST,
        by_hand=by_hand,
        seeds=seeds,
        statistics=statistics(returns(seeds), by_hand),
    )
    curves = kept.curves_of({one.seed: one.curve for one in found})
    if old:
        there = kept.read_curves(folder, agent)
        there = there.filter(~there["seed"].is_in([one.seed for one in found]))
        curves = there.vstack(curves).sort("seed", "step")
    kept.write_curves(folder, agent, curves)
    return file.write(folder, published)


def returns(seeds: dict[str, Seed]) -> Any:
    """Returns of all seeds: float64 array [seeds, episodes]."""
    return np.array([one.played.returns for _, one in sorted(seeds.items(), key=_by_seed)])


def commands(agent: str, settings: dict[str, Any], seeds: list[int]) -> str:
    """What trains these seeds again, as one line of shell."""
    parts, begin = [], seeds[0]
    for seed, after in zip(seeds, [*seeds[1:], -1], strict=True):
        if after != seed + 1:
            own = agents.settings(agent, settings | {"seed": begin}).model_dump(mode="json")
            parts.append(f"{command(agent, own)} --seeds {seed - begin + 1}")
            begin = after
    return " && ".join(parts)


def play(where: str, one: Training, episodes: int) -> Played:
    """A training's best network in the test episodes."""
    maker = judge.PROBLEMS[where][0][2]
    row = f"seed {one.seed}", judge.AGENT, maker, partial(Greedy, one.module)
    return _played(row, episodes)


def steps_of(where: str) -> int:
    """Steps of an episode."""
    batch = judge.PROBLEMS[where][0][2](1)
    try:
        return int(batch.steps)
    finally:
        batch.close()


def problem_of(agent: str, one: Training) -> str:
    """Name of the environment in which a training is compared with policies by hand."""
    where = problem(agent, agents.settings(agent, one.settings))
    if where is None:
        raise UserError(
            f"{agent}: no policy by hand plays in the environment of these settings: "
            "docs/environments.md lists those that have some"
        )
    return where


def _whole(
    before: Published | None, old: Published | None, found: list[Training], trained: Path
) -> None:
    """Check that each published seed is kept, or can be played again."""
    missing = set(before.seeds if before else ()) - {str(one.seed) for one in found}
    if missing and old is None:
        raise UserError(
            f"{trained}: no training of seed {', '.join(sorted(missing, key=int))}, which is "
            "published and has to be played again: train it, or leave the episodes as they are"
        )


def _seeds(
    old: Published | None, found: list[Training], where: str, episodes: int
) -> dict[str, Seed]:
    seeds = dict(old.seeds) if old else {}
    new = [one for one in found if _changed(seeds.get(str(one.seed)), one)]
    for one in progress(new, "playing seeds", len(new)):
        seeds[str(one.seed)] = Seed(
            steps=one.steps,
            best_steps=one.best_steps,
            network=one.network,
            played=play(where, one, episodes),
            cost=one.cost,
        )
    return dict(sorted(seeds.items(), key=_by_seed))


def _changed(seed: Seed | None, one: Training) -> bool:
    return seed is None or seed.network != one.network


def _by_seed(item: tuple[str, Any]) -> int:
    return int(item[0])


def _by_hand(where: str, episodes: int) -> list[Played]:
    rows = [row for row in judge.PROBLEMS[where] if row[1] in KINDS]
    return [_played(row, episodes) for row in progress(rows, "playing by hand", len(rows))]


def _played(row: judge.Played, episodes: int) -> Played:
    found = judge.play(row, episodes, seed=FIRST)
    return Played(
        name=found.name,
        kind=found.kind,
        returns=[_short(value) for value in found.returns],
        mbps=_short(found.mbps.mean()),
        rtt_ms=_short(found.rtt_ms.mean()),
    )


def _short(value: float) -> float:
    """A number with as many digits as mean something."""
    return float(f"{value:.{DIGITS}g}")
