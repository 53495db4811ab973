"""Mean rewards of agents and of policies by hand, all on the same episodes of an environment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from models.closedloop import Player
    from models.envs.batching import Batching

TEST_SEED = 1 << 40
"""Seed of episodes that no training draws: theirs are below 2^31."""
Act = Callable[[Any], NDArray[np.int64]]


def returns(batch: Batching, act: Act, seed: int = TEST_SEED) -> NDArray[np.float64]:
    """Mean reward of a step in each environment's first episode, a team's together.

    Parameters
    ----------
    batch : Batching
        Whose first episodes are whole; it is closed afterwards.
    act : callable
        Takes the batch, returns actions, int64 array [N, A].
    seed : int, optional
        Environment i has the same episode for every policy that is played with it.

    Returns
    -------
    float64 array [N]
    """
    from models.one_thread import one_thread

    total = np.zeros(batch.num_envs)
    steps = np.zeros(batch.num_envs)
    try:
        with one_thread():
            batch.reset(seed)
            over = np.zeros(batch.num_envs, bool)
            for _ in range(batch.steps):
                batch.step(act(batch))
                total += np.where(over, 0.0, batch.rewards.sum(axis=1))
                steps += ~over
                over |= batch.terminated | batch.truncated
    finally:
        batch.close()
    result: NDArray[np.float64] = total / steps
    return result


def digest(files: Iterable[Path]) -> str:
    """SHA-256 of a study's files and of this one, for the keys of returns that are kept."""
    found = hashlib.sha256()
    for path in (Path(__file__), *files):
        found.update(path.read_bytes())
    return found.hexdigest()


def greedy(player: Player, batch: Batching) -> Act:
    """An agent's own choices in a batch."""
    from models.rl.layout import Layout
    from models.rl.policy import Greedy

    return Greedy(player.policy.module(Layout.of(batch)))
