"""Judge a trained network: its return when it always takes the best action."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.envs.samplers import HELD_OUT, VALIDATION, of_split


def episodes_seed(seed: int) -> int:
    """The seed with which environments are reset when a policy is judged with a seed."""
    return int(np.random.default_rng([seed, 0, 0]).integers(1 << 31))


def greedy_returns(
    algorithm: Any, episodes: int, seed: int, module: Any = None, test: bool = False
) -> NDArray[np.float64]:
    """Returns of episodes that the training hasn't seen, in the environment's own reward.

    Parameters
    ----------
    algorithm : AgentAlgorithm
    episodes : int
        How many; equally many in each environment, so that those that end early don't count more.
    seed : int
        Of the environments; validation and test have seeds of their own.
    module : AgentModule, optional
        By default the one that learns.
    test : bool
        Whether measured traces are those held out, which nothing else sees; otherwise they are
        those of validation.

    Returns
    -------
    float64 array [episodes]
    """
    from models.rl.runner import BatchRunner

    lanes = min(episodes, algorithm.settings["num_envs"])
    rounds = -(-episodes // lanes)
    config = algorithm.config.copy(copy_frozen=False)
    settings = dict(config.env_config["settings"])
    for name in config.env_config["training_only"]:
        settings.pop(name, None)
    if "sampler" in settings:
        settings["sampler"] = of_split(str(settings["sampler"]), HELD_OUT if test else VALIDATION)
    config.env_config = config.env_config | {"num_envs": lanes, "settings": settings}
    # In this process and with its threads, wherever the training samples.
    config.num_env_runners = 0
    # RLlib would seed the process's own generators, from which the training goes on drawing.
    config.debugging(seed=None)
    runner = BatchRunner(config=config, worker_index=0, num_workers=0)
    runner.config.debugging(seed=seed)
    runner.module = module or algorithm.learner.agent
    found: list[list[float]] = [[] for _ in range(lanes)]
    try:
        runner.make_env(stagger=False)
        while min(map(len, found)) < rounds:
            sampled = runner.sample(greedy=True)
            for lane, value in zip(sampled.lanes, sampled.returns, strict=True):
                found[lane].append(value)
    finally:
        runner.stop()
    return np.array([one[:rounds] for one in found]).T.ravel()[:episodes]
