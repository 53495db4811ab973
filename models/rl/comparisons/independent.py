"""Every part learns its own Q and takes the others for part of the network (IQL).

MA-CC's independent Q-learning, and with senders or routers alone its RL-TCP and RL-AQM.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from models.rl.algorithms.replay import VdnAlgorithm
from models.rl.comparisons.params import Independent
from models.rl.learners.q import Asked, QLearner


class IndependentLearner(QLearner):
    """One error for each part instead of one for their sum."""

    def squares(self, one: Asked) -> tuple[Tensor, Tensor]:
        """Sums over the parts that are there."""
        rewards = one.rewards[..., None] if one.own is None else one.own
        apart = replace(one, rewards=rewards, terminated=one.terminated[..., None])
        error = apart.errors(self.settings["gamma"], _each, _each)
        error = error * one.mask[:, :-1]
        return error.square().sum(-1), error.detach().abs().sum(-1)


def _each(parts: Tensor) -> Tensor:
    return parts


class IndependentAlgorithm(VdnAlgorithm):
    """MA-CC's networks, each for itself."""

    Params, Learner = Independent, IndependentLearner
