"""Double Q learning on windows; a team's Q is the sum of its parts' (ma-cc.txt eqs. 4-6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.rl.learners.base import AgentLearner, Batch

Mix = Callable[[Tensor], Tensor]
"""Takes the Qs of all parts, [B, L, A], 0 for those that aren't there; returns the team's."""


def summed(parts: Tensor) -> Tensor:
    """The team's Q is the sum of its parts' (ma-cc.txt eq. 4)."""
    return parts.sum(-1)


def td_errors(
    now: Tensor,
    best: Tensor,
    target: Tensor,
    actions: Tensor,
    mask: Tensor,
    rewards: Tensor,
    terminated: Tensor,
    gamma: float,
    mix: Mix = summed,
    mix_after: Mix = summed,
) -> Tensor:
    """How far the team's Q is from what it should be (tcco.txt eq. 16).

    Parameters
    ----------
    now, best, target : float32 tensor [B, L, A, C]
        Q of the row, and of the row after by the network that chooses and the one that values.
    actions : int64 tensor [B, L, A]
    mask : bool tensor [B, L + 1, A]
        Parts that are there; the others' Qs don't count.
    rewards : float32 tensor [B, L]
        Of the team.
    terminated : bool tensor [B, L]
        After these there is nothing more to come.
    gamma : float
    mix, mix_after : callable
        Make a team's Q of its parts', of the row and of the row after.

    Returns
    -------
    tensor [B, L]
        With the gradient of ``now``.
    """
    chosen = now.gather(-1, actions[..., None])[..., 0]
    total = mix(chosen * mask[:, :-1])
    with torch.no_grad():
        after = target.gather(-1, best.argmax(-1, keepdim=True))[..., 0]
        later = mix_after(after * mask[:, 1:])
        wanted = rewards + gamma * ~terminated * later
    return total - wanted


@dataclass
class Asked:
    """The rows of a batch at which a network learns, with what it says there.

    Attributes
    ----------
    now, best, target : float32 tensor [B, L, A, C]
        As for `td_errors`.
    seen : float32 tensor [B, L + 1, A, D]
        Standardised; the last row is the one after.
    mask : bool tensor [B, L + 1, A]
    actions : int64 tensor [B, L, A]
    rewards : float32 tensor [B, L]
        Of the team, less the mean where that is asked for.
    terminated : bool tensor [B, L]
    own : float32 tensor [B, L, A], optional
        Each part's own reward, where the ring keeps them.
    """

    now: Tensor
    best: Tensor
    target: Tensor
    seen: Tensor
    mask: Tensor
    actions: Tensor
    rewards: Tensor
    terminated: Tensor
    own: Tensor | None = None

    def errors(self, gamma: float, mix: Mix = summed, mix_after: Mix = summed) -> Tensor:
        """How far these Qs are from what they should be; as `td_errors`."""
        rows = (self.now, self.best, self.target, self.actions, self.mask)
        return td_errors(*rows, self.rewards, self.terminated, gamma, mix, mix_after)


class QLearner(AgentLearner):
    """Learns a module with ``values``: TCCO's Transformer and MA-CC's teams."""

    def _make_module(self) -> Any:
        # Before the optimiser is made, which leaves out what has no gradient.
        module: Any = super()._make_module()
        for one in module.values():
            one.make_target()
        return module

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean square over all positions that were acted in (eq. 15)."""
        mask, over = batch["mask"], batch["over"]
        seen = self.agent.standardise(batch["observations"], mask)
        now, best, target = self.agent.values(seen, mask, over, over.shape[1] - 1)
        if not self.settings["double"]:
            best = target.masked_fill(best == float("-inf"), float("-inf"))
        # Some networks learn at a window's last row alone.
        length = now.shape[1]
        rows, after = slice(-1 - length, -1), slice(-1 - length, None)
        rewards, own = batch["rewards"][:, rows], batch.get("own")
        mean = self.agent.standardise.rewarded()[0] if self.settings["centre"] else None
        if mean is not None:
            rewards = rewards - mean
        if own is not None:
            own = own[:, rows]
            if mean is not None:
                own = own - mean / mask[:, rows].sum(-1, keepdim=True).clamp(min=1)
        square, size = self.squares(
            Asked(
                now,
                best,
                target,
                seen[:, after],
                mask[:, after],
                batch["actions"][:, rows].long(),
                rewards,
                batch["terminated"][:, rows],
                own,
            )
        )
        acted = ~over[:, rows]
        square = square * acted * batch["weights"][:, None]
        found = size * acted
        counts = acted.sum(1).clamp(min=1)
        report = {"errors": found.sum(1) / counts, "q": now.detach().max(-1).values.mean()}
        return square.sum() / acted.sum().clamp(min=1), report

    def squares(self, one: Asked) -> tuple[Tensor, Tensor]:
        """Squared errors with their gradient, and how large the errors are; both [B, L]."""
        error = one.errors(self.settings["gamma"])
        return error.square(), error.detach().abs()

    def after_step(self) -> None:
        """Move a soft target a little; a hard one is renewed by the algorithm's count of steps."""
        if self.settings["tau"] < 1.0:
            self.renew(self.settings["tau"])

    def renew(self, tau: float = 1.0) -> None:
        """Let the target take over a share of the network."""
        ours: list[Tensor] = list(self.agent.net.parameters())
        theirs: list[Tensor] = list(self.agent.target.parameters())
        with torch.no_grad():
            torch._foreach_lerp_(theirs, ours, tau)
