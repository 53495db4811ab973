"""IQL with discrete actions: a value that is an expectile of logged actions', and a policy."""

from __future__ import annotations

from torch import Tensor, nn

from models.offline.losses import (
    advantage_weights,
    chosen,
    expectile,
    mean_over,
    unlikelihood,
)
from models.offline.methods.base import Batch, Method, follow, frozen, values


class ImplicitMethod(Method):
    """No action that wasn't logged is ever valued."""

    valued = False

    def make(self) -> None:
        """Make the networks of Q and V, and Q's target."""
        self.q, self.v = self.another(), self.another(1)
        self.aside = frozen(self.q)

    def losses(self, batch: Batch, seen: Tensor, rewards: Tensor) -> dict[str, Tensor]:
        """``v``, ``q`` and ``policy`` (eqs. 5, 6 and 7)."""
        mask, actions, known = batch["mask"], batch["actions"], batch["known"]
        there, settings = mask[:, :-1], self.settings
        value = (values(self.v, seen, mask, False)[..., 0] * there).sum(-1)
        later = (values(self.v, seen, mask, True)[..., 0] * mask[:, 1:]).sum(-1).detach()
        taken = chosen(values(self.aside, seen, mask, False), actions, there)
        wanted = rewards + settings.gamma * ~batch["terminated"] * later
        q = chosen(values(self.q, seen, mask, False), actions, there)
        advantage = taken - value
        weight = advantage_weights(advantage.detach(), settings.sharpness, settings.heaviest)
        odds = unlikelihood(values(self.agent.net, seen, mask, False), actions, there)
        return {
            "v": mean_over(expectile(advantage, settings.expectile), known),
            "q": mean_over((q - wanted).square(), known),
            "policy": mean_over(weight * odds, known),
        }

    def after_update(self) -> None:
        """Move the target."""
        follow(self.aside, self.q, self.settings.tau)

    def starting_net(self) -> nn.Module:
        """Q: an online training goes on with values, not with odds."""
        return self.q
