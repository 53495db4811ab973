"""TCCO's network with one head over all joint actions of the subflows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from data.errors import UserError
from models.rl.layout import Layout
from models.rl.networks.transformer import Transformer, TransformerModule

MOST = 5**5
"""Joint actions at most."""


class JointTransformer(Transformer):
    """Q values of all joint actions, [B, L, 1, J]: the first part's action counts most."""

    def __init__(self, layout: Layout, settings: dict[str, Any]) -> None:
        super().__init__(layout, settings)
        inputs = settings["width"] + layout.parts * settings["subflow_width"]
        self.head = nn.Linear(inputs, layout.actions**layout.parts)

    def forward(self, seen: Tensor, mask: Tensor, first: Tensor, last: bool = False) -> Tensor:
        """As for `Transformer`, for joint actions."""
        tokens, own = self.tokens(seen, mask, first, last)
        found: Tensor = self.head(torch.cat([tokens, own.flatten(2)], dim=-1))
        return found[:, :, None]


class JointModule(TransformerModule):
    """Acts by the best joint action."""

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The Transformer, and which action of each part a joint one is."""
        parts, actions = self.layout.parts, self.layout.actions
        if actions**parts > MOST:
            raise UserError(
                f"joint head: {parts} subflows have {actions}^{parts} joint actions, {MOST} are "
                "the most: set fewer env.params.subflows, or train tcco, which sums a head each"
            )
        table = torch.cartesian_prod(*[torch.arange(actions)] * parts).view(-1, parts)
        self.register_buffer("table", table, persistent=False)
        self.table: Tensor
        self.strides = [actions**k for k in reversed(range(parts))]
        legal = torch.from_numpy(self.layout.legal())
        self.register_buffer("known", legal[torch.arange(parts), table].all(-1), persistent=False)
        self.known: Tensor
        self.context = int(settings["context"])
        return JointTransformer(self.layout, settings)

    def allowed(self, mask: Tensor) -> Tensor:
        """Joint actions that there are, bool tensor [..., J]; parts that aren't there do 0."""
        idle = (self.table == 0) | mask[..., None, :]
        return self.known & idle.all(-1)

    def number(self, actions: Tensor, mask: Tensor) -> Tensor:
        """Number of the joint action that parts' [..., A] are."""
        found: Tensor = (actions * mask * torch.tensor(self.strides)).sum(-1)
        return found

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """A part's scores are the best Qs that its actions are part of: all lead to the best."""
        found = super().act(seen, mask, state)
        q = found["scores"][:, 0].masked_fill(~self.allowed(mask), float("-inf"))
        parts, actions = self.layout.parts, self.layout.actions
        whole = q.view(-1, *[actions] * parts)
        scores = [
            whole.movedim(1 + part, 1).reshape(len(q), actions, -1).amax(2) for part in range(parts)
        ]
        return {**found, "scores": self._by_part(torch.stack(scores, dim=1))}

    def _by_part(self, scores: Tensor) -> Tensor:
        return super()._shown(scores)

    def _shown(self, scores: Tensor) -> Tensor:
        """Joint scores as they are: which of them are allowed depends on the parts there."""
        return scores
