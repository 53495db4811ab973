"""Compare trained agents with policies by hand, all on the same episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipelines.output import progress
from pipelines.rl.budget import PLAYED_BY_HAND
from pipelines.rl.judging import sampler_of
from pipelines.studies.environments import judge

if TYPE_CHECKING:
    from models.rl.params import Run

BASELINES = (judge.RANDOM, judge.CONSTANT, judge.SCRIPT)
_RESAMPLES = 2000


def problem(name: str, params: Run) -> str | None:
    """Name of the study's problem that an agent was trained in; None if there is none."""
    from models.rl import agents
    from models.rl.runner import make

    if name not in judge.KINDS or set(params.env) - PLAYED_BY_HAND:
        return None
    found = f"{judge.KINDS[name]}, {sampler_of(name, params)}"
    if found not in judge.PROBLEMS:
        return None
    played = judge.PROBLEMS[found][0][2](1)
    own = make(agents.agent(name).maker, 1, 1, params.env)
    return found if len(played.kinds) == len(own.kinds) else None


def compared(where: str, folders: Sequence[Path], episodes: int) -> dict[str, Any]:
    """Interquartile means of the agents' returns and of the best policies by hand.

    Parameters
    ----------
    where : str
        From `problem`.
    folders : sequence of Path
        Trainings of one agent, a seed each.
    episodes : int
        At least 2; the same for everybody, none of them seen in training.

    Returns
    -------
    dict
        ``return``: ``iqm`` over seeds and episodes, mean reward of a step; ``low`` and ``high``, a
        95 % interval of drawing whole seeds anew, None if there is one seed. ``baselines``: the
        interquartile mean of the best policy of each kind on these episodes, None if a problem
        has none; ``best``: their names.
    """
    own = judge.trained(folders)[where]
    by_hand = [row for row in judge.PROBLEMS[where] if row[1] in BASELINES]
    rows = [*by_hand, *own]
    results = [judge.play(row, episodes) for row in progress(rows, "playing", len(rows))]
    return summary(results, [one for one in results if one.kind == judge.AGENT])


def summary(results: Sequence[judge.Result], own: Sequence[judge.Result]) -> dict[str, Any]:
    """Sum up episodes that have been played; returns what `compared` does.

    Parameters
    ----------
    results : sequence of Result
        Policies by hand among them; those that played fewer episodes than the agents don't count.
    own : sequence of Result
        The agents, a seed each.
    """
    from models.stats.aggregate import iqm

    agents = np.array([one.returns for one in own])
    whole = [one for one in results if len(one.returns) == agents.shape[1]]
    low, high = interval(agents)
    found: dict[str, Any] = {
        "return": {"iqm": float(iqm(agents)), "low": low, "high": high},
        "baselines": {},
        "best": {},
    }
    for kind in BASELINES:
        scores = {one.name: float(iqm(one.returns[None])) for one in whole if one.kind == kind}
        best = max(scores, key=lambda name: scores[name], default=None)
        found["best"][kind] = best
        found["baselines"][kind] = None if best is None else scores[best]
    return found


def interval(agents: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """95 % interval of the interquartile mean; None if there is one seed.

    A good training is good in all episodes, so seeds are drawn whole.

    Parameters
    ----------
    agents : float64 array [seeds, episodes]
    """
    from models.stats.aggregate import iqm

    count = len(agents)
    if count < 2:
        return None, None
    drawn = np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
    low, high = np.quantile(iqm(agents[drawn]), (0.025, 0.975))
    return float(low), float(high)
