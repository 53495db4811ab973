"""Behaviour cloning: the odds of each logged action are made large."""

from __future__ import annotations

from torch import Tensor

from models.offline.losses import mean_over, unlikelihood
from models.offline.methods.base import Batch, Method, values


class CloningMethod(Method):
    """The network's scores are logarithms of odds, so that the best is what logs do most often."""

    valued = False

    def losses(self, batch: Batch, seen: Tensor, rewards: Tensor) -> dict[str, Tensor]:
        """The cross-entropy of the joint action, of all decisions that were logged."""
        mask = batch["mask"]
        scores = values(self.agent.net, seen, mask, False)
        there = mask[:, :-1]
        return {"cloning": mean_over(unlikelihood(scores, batch["actions"], there), there.any(-1))}
