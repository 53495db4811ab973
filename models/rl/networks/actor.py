"""An actor and a critic without memory, which see the last observations side by side."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from models.rl.layout import Layout
from models.rl.networks.module import AgentModule
from models.rl.networks.transformer import begins


class Actor(nn.Module):
    """Logits and value of the last observations, side by side, behind two layers."""

    def __init__(self, layout: Layout, settings: dict[str, Any]) -> None:
        super().__init__()
        width = settings["width"]
        inputs = settings["context"] * layout.parts * layout.features
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.actor = nn.Linear(width, layout.parts * layout.actions)
        self.critic = nn.Linear(width, 1)
        # At first all actions are about as likely.
        nn.init.normal_(self.actor.weight, std=0.01)
        nn.init.zeros_(self.actor.bias)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [..., A C] and values [...] of standardised rows [..., K, A, D]."""
        found = self.body(rows.flatten(-3))
        return self.actor(found), self.critic(found)[..., 0]


class ActorModule(AgentModule):
    """Keeps the observations before as its state; those before an episode are zeros."""

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """Actor and critic."""
        self.before = int(settings["context"]) - 1
        return Actor(self.layout, settings)

    def get_initial_state(self) -> dict[str, Tensor]:
        """No observations before the first, of one environment."""
        return {"before": torch.zeros(self.before, self.layout.parts, self.layout.features)}

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """Scores are logits, and the critic has its say."""
        rows = torch.cat([state["before"], seen[:, None]], dim=1)
        logits, values = self.net(rows)
        after = {"before": rows[:, 1:]}
        return {"scores": self._by_part(logits), "values": values, "state_out": after}

    def windows(
        self, seen: Tensor, over: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """Logits [B, L, A, C] and values [B, L] of windows, whose state is what was seen before."""
        length = seen.shape[1]
        whole = torch.cat([state[0], seen], dim=1)
        # Row t looks at the rows from t - before to t, as numbered in the window.
        row = torch.arange(length)[:, None] + torch.arange(-self.before, 1)
        first = begins(over)[..., None]
        own = (first == 0) | (row >= first)
        rows = whole[:, row + self.before] * own[..., None, None]
        logits, values = self.net(rows)
        return self._by_part(logits), values

    def _by_part(self, logits: Tensor) -> Tensor:
        shape = (*logits.shape[:-1], self.layout.parts, self.layout.actions)
        return self._shown(logits.view(shape))
