"""Discrete CQL: double Q learning with a term that keeps what wasn't logged low."""

from __future__ import annotations

from torch import Tensor

from models.offline.losses import conservatism, mean_over
from models.offline.methods.base import Batch, Method, follow, frozen, values
from models.rl.learners.q import td_errors


class ConservativeMethod(Method):
    """Half the squared error of one step and ``alpha`` times CQL's term."""

    def make(self) -> None:
        """Set the target aside."""
        self.aside = frozen(self.agent.net)

    def losses(self, batch: Batch, seen: Tensor, rewards: Tensor) -> dict[str, Tensor]:
        """``td`` and ``conservatism``."""
        mask, actions = batch["mask"], batch["actions"]
        now = values(self.agent.net, seen, mask, False)
        target = values(self.aside, seen, mask, True)
        best = target
        if self.settings.double:
            best = values(self.agent.net, seen, mask, True).detach()
        error = td_errors(now, best, target, actions, mask, rewards, batch["terminated"],
                          self.settings.gamma)  # fmt: skip
        known = batch["known"]
        above = conservatism(now, actions, mask[:, :-1])
        return {
            "td": 0.5 * mean_over(error.square(), known),
            "conservatism": self.settings.alpha * mean_over(above, known),
        }

    def after_update(self) -> None:
        """Move the target."""
        follow(self.aside, self.agent.net, self.settings.tau)
