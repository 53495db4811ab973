"""Play policies from the very decisions on that logs were asked about: the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.envs.scripted import Policy
from models.offline.acting import Acting
from models.offline.aside import Aside
from models.offline.weighting import discounted
from models.rl import choose
from models.rl.policy import Greedy
from pipelines.studies.estimates.logs import CONTROLS, Place, batch

Float = NDArray[np.float64]
Make = Callable[[Any], Policy]
"""Takes a batch, gives what acts in it."""


def acting(policy: Acting, seed: int) -> Make:
    """Let a policy play: by its best actions, or by its odds if it is a clone.

    Parameters
    ----------
    policy : Acting
    seed : int
        Draws a clone's actions.
    """

    def make(envs: Any) -> Policy:
        best, rng = Greedy(policy.module), np.random.default_rng(seed)

        def act(batch: Any) -> NDArray[np.int64]:
            actions = best(batch)
            return actions if policy.greedy else choose.sampled(best.scores, rng)[0]

        return act

    return make


def played(make: Make, aside: Aside, kind: str) -> Float:
    """Rewards of a policy that takes over where logs were asked, a subflow's mean.

    A run of a script is played again with the very actions that were logged, up to the decision
    where the policy takes over; it has looked on before. A control's run can't be: there policies
    take over where an agent would, at the run's first decision.

    Parameters
    ----------
    make : callable
    aside : Aside
        With ``starts`` "first" if ``kind`` is `CONTROLS`.
    kind : str

    Returns
    -------
    float64 array [N, length]
    """
    starts = np.concatenate(aside.steps)
    which = np.repeat(np.arange(len(aside.runs)), [len(steps) for steps in aside.steps])
    places = [Place.read(aside.runs[i].scenario) for i in which]
    total = int(starts.max()) + aside.length
    envs = batch(places, total)
    envs.reset(0)
    logged = _logged(aside, envs, which, total) if kind != CONTROLS else envs.actions[:, None]
    policy = make(envs)
    found = np.zeros((len(starts), aside.length))
    there = envs.mask.sum(axis=1)
    for t in range(total):
        actions = policy(envs)
        before = t < starts
        if before.any():
            actions = np.where(before[:, None], logged[:, t], actions)
        envs.step(actions)
        at = t - starts
        own = np.flatnonzero((at >= 0) & (at < aside.length))
        found[own, at[own]] = envs.rewards[own].sum(axis=-1) / there[own]
    envs.close()
    return found


def _logged(aside: Aside, envs: Any, which: Any, total: int) -> Any:
    actions = np.full((len(which), total, envs.mask.shape[1]), envs.params.reach)
    for lane, i in enumerate(which):
        run = aside.runs[i]
        steps = min(total, run.steps)
        actions[lane, :steps, envs.mask[lane]] = run.action[:steps].T
    return actions


def summed(rewards: Float, gamma: float, length: int) -> float:
    """The mean of what was played, as an estimate is one."""
    return float(discounted(rewards[:, :length], gamma).mean())
