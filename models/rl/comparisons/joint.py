"""TCCO with one head over all joint actions, as tcco.txt section III.C writes the action space.

5 actions for two subflows are 25 joint ones, for M subflows 5^M; the agent itself sums a head per
subflow instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from torch import Tensor

from models.rl.algorithms.replay import TransformerDqnAlgorithm
from models.rl.learners.q import Asked, QLearner
from models.rl.networks.joint import JointModule


class JointLearner(QLearner):
    """Learns the Q of joint actions as if one part took them (tcco.txt eqs. 15 and 16)."""

    def squares(self, one: Asked) -> tuple[Tensor, Tensor]:
        """As for `QLearner`."""
        agent = cast(JointModule, self.agent)
        there = one.mask.any(-1, keepdim=True)
        barred = ~agent.allowed(one.mask[:, 1:])[:, :, None]
        joint = replace(
            one,
            best=one.best.masked_fill(barred, float("-inf")),
            actions=agent.number(one.actions, one.mask[:, :-1])[..., None],
            mask=there,
        )
        error = joint.errors(self.settings["gamma"])
        return error.square(), error.detach().abs()


class JointAlgorithm(TransformerDqnAlgorithm):
    """TCCO with a joint head."""

    Module, Learner = JointModule, JointLearner
