"""Judge a trained network: its return when it always takes the best action."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TRAINING_ONLY = ("twin_k",)
"""Settings of environments that change the rewards that are learned from, not what they are."""


def greedy_returns(algorithm: Any, episodes: int, seed: int) -> NDArray[np.float64]:
    """Returns of episodes that the training hasn't seen, in the environment's own reward.

    Parameters
    ----------
    algorithm : AgentAlgorithm
    episodes : int
        How many; equally many in each environment, so that those that end early don't count more.
        An environment's first one is left out: batches cut it to a length of its own.
    seed : int
        Of the environments; validation and test have seeds of their own.

    Returns
    -------
    float64 array [episodes]
    """
    from models.rl.runner import BatchRunner

    lanes = min(episodes, algorithm.settings["num_envs"])
    rounds = -(-episodes // lanes)
    config = algorithm.config.copy(copy_frozen=False)
    settings = dict(config.env_config["settings"])
    for name in TRAINING_ONLY:
        settings.pop(name, None)
    config.env_config = config.env_config | {"num_envs": lanes, "settings": settings}
    config.debugging(seed=seed)
    runner = BatchRunner(config=config, worker_index=0, num_workers=0)
    runner.module = algorithm.learner.agent
    found: list[list[float]] = [[] for _ in range(lanes)]
    try:
        while min(map(len, found)) < rounds + 1:
            sampled = runner.sample(greedy=True)
            for lane, value in zip(sampled.lanes, sampled.returns, strict=True):
                found[lane].append(value)
    finally:
        runner.stop()
    return np.array([one[1 : rounds + 1] for one in found]).T.ravel()[:episodes]
