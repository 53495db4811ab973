"""Double Q learning on windows; a team's Q is the sum of its parts' (ma-cc.txt eqs. 4-6)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.rl.learners.base import AgentLearner, Batch


def td_errors(
    now: Tensor,
    best: Tensor,
    target: Tensor,
    actions: Tensor,
    mask: Tensor,
    rewards: Tensor,
    terminated: Tensor,
    gamma: float,
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

    Returns
    -------
    tensor [B, L]
        With the gradient of ``now``.
    """
    chosen = now.gather(-1, actions[..., None])[..., 0]
    total = (chosen * mask[:, :-1]).sum(-1)
    with torch.no_grad():
        after = target.gather(-1, best.argmax(-1, keepdim=True))[..., 0]
        later = (after * mask[:, 1:]).sum(-1)
        wanted = rewards + gamma * ~terminated * later
    return total - wanted


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
        length = over.shape[1] - 1
        now, best, target = self.agent.values(seen, mask, over, length)
        rewards = batch["rewards"][:, :-1]
        if self.settings["centre"]:
            rewards = rewards - self.agent.standardise.rewarded()[0]
        error = td_errors(
            now,
            best,
            target,
            batch["actions"][:, :-1].long(),
            mask,
            rewards,
            batch["terminated"][:, :-1],
            self.settings["gamma"],
        )
        acted = ~over[:, :-1]
        square = error.square() * acted * batch["weights"][:, None]
        found = error.detach().abs() * acted
        counts = acted.sum(1).clamp(min=1)
        report = {"errors": found.sum(1) / counts, "q": now.detach().max(-1).values.mean()}
        return square.sum() / acted.sum().clamp(min=1), report

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
