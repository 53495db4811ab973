"""PPO with an LSTM: Nuwa (nuwa.txt algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.rl.algorithms.base import AgentAlgorithm
from models.rl.fragment import Fragment
from models.rl.learners.base import AgentLearner
from models.rl.learners.ppo import PpoLearner, advantages
from models.rl.networks.lstm import RecurrentModule
from models.rl.networks.module import AgentModule
from models.rl.params import Ppo, RecurrentPpo


class PpoAlgorithm(AgentAlgorithm):
    """Some rows of all environments, then several epochs over their windows."""

    Params: type[Ppo] = RecurrentPpo
    Module: type[AgentModule] = RecurrentModule
    Learner: type[AgentLearner] = PpoLearner
    # Its actions' odds, values and states are of the scale that they were sampled with.
    scales_first = False

    def training_step(self) -> None:
        """Sample, then learn."""
        settings, warming = self.settings, self.steps < self.settings["warmup"]
        gathered = self.gather(rows=settings["rows"], chunk=settings["window"])
        fragments = [one for one in gathered if one is not None]
        if not fragments:
            return
        scale = self.learner.agent.standardise.rewarded()[1]
        parts = [windows(one, settings["window"], self._wanted(one, scale)) for one in fragments]
        arrays = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
        size = max(1, len(arrays["over"]) // settings["minibatches"])
        result = self.learn(
            arrays, num_epochs=settings["epochs"], minibatch_size=size, rng=self.rng
        )
        self.updates += settings["epochs"] * settings["minibatches"]
        if warming:
            for one in fragments:
                self.standardise(one)
        self.send_weights()
        self.report(result)

    def _wanted(self, one: Fragment, scale: float) -> dict[str, NDArray[np.float32]]:
        assert one.values is not None
        rewards = one.rewards / np.float32(scale)
        found = advantages(
            rewards,
            one.values,
            one.terminated,
            one.over,
            self.settings["gamma"],
            self.settings["lambda_"],
        )
        return {"advantages": found, "wanted": found + one.values[:-1]}


def windows(one: Fragment, length: int, more: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Cut a fragment [T, N, ...] into windows [N T / L, L, ...], with the state before each."""
    rows = {
        "observations": one.observations,
        "mask": one.mask,
        "actions": one.actions,
        "over": one.over,
        "logp": one.logp,
        **more,
    }
    found: dict[str, NDArray[Any]] = {}
    for name, value in rows.items():
        assert value is not None
        count, lanes, *rest = value.shape
        cut = value.reshape(count // length, length, lanes, *rest)
        found[name] = np.moveaxis(cut, 2, 0).reshape(-1, length, *rest)
    for name, value in one.states.items():
        chunks, lanes, *rest = value.shape
        found[name] = np.moveaxis(value, 1, 0).reshape(lanes * chunks, *rest)
    return found
