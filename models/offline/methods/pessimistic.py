"""A pessimistic ensemble: what its members disagree about is worth less."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.offline.losses import chosen, conservatism, lower_bound, mean_over
from models.offline.methods.base import Batch, Method, follow, frozen, values


class PessimisticMethod(Method):
    """Members learn from targets of their own; the network that acts learns their lower bound.

    So the policy is a network of the agent's own kind. The bound is taken part by part, since a
    team's Q is a sum of its parts' and its own bound isn't.
    """

    def make(self) -> None:
        """Make the members and their targets."""
        self.members = nn.ModuleList(self.another() for _ in range(self.settings.members))
        self.aside = nn.ModuleList(frozen(one) for one in self.members)

    def losses(self, batch: Batch, seen: Tensor, rewards: Tensor) -> dict[str, Tensor]:
        """``td`` and ``conservatism`` of all members, and the ``bound`` of the one that acts."""
        mask, actions, known = batch["mask"], batch["actions"], batch["known"]
        there, settings = mask[:, :-1], self.settings
        now = torch.stack([values(one, seen, mask, False) for one in self.members])
        after = torch.stack([values(one, seen, mask, True) for one in self.aside])
        best = lower_bound(after, settings.pessimism).argmax(-1)
        td, above = [], []
        for mine, later in zip(now, after, strict=True):
            wanted = rewards + settings.gamma * ~batch["terminated"] * chosen(
                later, best, mask[:, 1:]
            )
            error = chosen(mine, actions, there) - wanted
            td.append(0.5 * mean_over(error.square(), known))
            above.append(mean_over(conservatism(mine, actions, there), known))
        bound = lower_bound(now.detach(), settings.pessimism)
        acting = values(self.agent.net, seen, mask, False)
        away = ((acting - bound).square().mean(-1) * there).sum(-1)
        return {
            "td": torch.stack(td).sum(),
            "conservatism": settings.alpha * torch.stack(above).sum(),
            "bound": mean_over(away, known),
        }

    def after_update(self) -> None:
        """Move the targets."""
        for target, one in zip(self.aside, self.members, strict=True):
            follow(target, one, self.settings.tau)
