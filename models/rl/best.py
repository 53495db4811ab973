"""Keeps the network that did best in validation, which is often not the last one."""

from __future__ import annotations

from typing import Any

import torch

from models.rl.judge import greedy_returns

VALIDATION, TEST = 1_000_003, 2_000_003
"""Added to a training's seed for the episodes that choose a network, and that judge it."""


def acting(weights: dict[str, Any]) -> dict[str, Any]:
    """What a network acts with, of all its weights: those of its target are for learning."""
    return {name: value for name, value in weights.items() if not name.startswith("target.")}


class Best:
    """The best network so far, and when the next look is due."""

    def __init__(self) -> None:
        self.steps, self.value, self.looked = 0, -float("inf"), 0
        self.network: dict[str, Any] = {}

    def look(self, algorithm: Any, last: bool) -> None:
        """Judge the network if it is time, and keep it if none was better.

        Its mean return stands as ``validation`` in the newest point of the training's curve.

        Parameters
        ----------
        algorithm : AgentAlgorithm
        last : bool
            Whether the training is at its end: then it is time in any case.
        """
        every = algorithm.settings["validate_every"]
        if not every or (algorithm.steps // every == self.looked // every and not last):
            return
        if self.looked == algorithm.steps:
            return
        self.looked = algorithm.steps
        episodes, seed = algorithm.settings["validation_episodes"], algorithm.settings["seed"]
        value = float(greedy_returns(algorithm, episodes, VALIDATION + seed).mean())
        if algorithm.curve:
            algorithm.curve[-1]["validation"] = value
        if value > self.value:
            self.steps, self.value = algorithm.steps, value
            network = acting(algorithm.learner.agent.state_dict())
            self.network = {name: tensor.numpy().copy() for name, tensor in network.items()}

    def module(self, algorithm: Any) -> Any:
        """The network: the best one, or the last if none was judged."""
        if not self.network:
            return algorithm.learner.agent
        # Its first weights are drawn, and replaced at once: nothing shall be missing elsewhere.
        with torch.random.fork_rng(devices=[]):
            found = algorithm.config.rl_module_spec.build()
        found.load_state_dict({k: torch.from_numpy(v) for k, v in self.network.items()})
        return found

    def numbers(self) -> list[float]:
        """What a checkpoint holds besides the network."""
        return [self.steps, self.value, self.looked]

    def restore(self, numbers: list[float], network: dict[str, Any]) -> None:
        """Go on with what a checkpoint holds."""
        self.steps, self.value, self.looked = int(numbers[0]), numbers[1], int(numbers[2])
        self.network = network
