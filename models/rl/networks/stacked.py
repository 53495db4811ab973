"""A Q network without memory, which sees the last observations side by side, or the present one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from models.rl.layout import Layout
from models.rl.networks.module import AgentModule
from models.rl.networks.transformer import begins


class Stacked(nn.Module):
    """The Transformer's network with two layers in its place; heads and sums are the same."""

    def __init__(self, layout: Layout, settings: dict[str, Any]) -> None:
        super().__init__()
        inner, width = settings["subflow_width"], settings["width"]
        self.each = nn.Sequential(
            nn.Linear(layout.features, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU()
        )
        inputs = settings["context"] * layout.parts * inner
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width + inner, layout.actions)

    def forward(self, seen: Tensor, mask: Tensor) -> Tensor:
        """Q of each action after the last observation.

        Parameters
        ----------
        seen : float32 tensor [B, K, A, D]
            Standardised, oldest first.
        mask : bool tensor [B, K, A]
            No part is there in rows before the episode.

        Returns
        -------
        tensor [B, A, C]
        """
        own = self.each(seen) * mask[..., None]
        whole = self.body(own.flatten(1))
        spread = whole[:, None].expand(-1, own.shape[2], -1)
        found: Tensor = self.head(torch.cat([spread, own[:, -1]], dim=-1))
        return found


class StackedModule(AgentModule):
    """Acts by the observations that it keeps as its state; learns at a window's last row."""

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The network."""
        self.context = int(settings["context"])
        return Stacked(self.layout, settings)

    def get_initial_state(self) -> dict[str, Tensor]:
        """No observations yet, of one environment."""
        shape = (self.context, self.layout.parts, self.layout.features)
        return {"seen": torch.zeros(shape), "there": torch.zeros(shape[:2], dtype=torch.bool)}

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """Scores are the Qs after the last observation."""
        rows = torch.cat([state["seen"][:, 1:], seen[:, None]], dim=1)
        there = torch.cat([state["there"][:, 1:], mask[:, None]], dim=1)
        scores = self._shown(self.net(rows, there))
        return {"scores": scores, "state_out": {"seen": rows, "there": there}}

    def values(
        self, seen: Tensor, mask: Tensor, over: Tensor, length: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Q of a window's last row, and of the row after twice.

        As for `models.rl.networks.transformer.TransformerModule.values`, with one row instead of
        ``length``: the others lack observations that they would be acted by.
        """
        now = self.net(seen[:, :-1], _own(mask[:, :-1], over[:, :-1]))
        with torch.no_grad():
            after = seen[:, 1:], _own(mask[:, 1:], over[:, 1:])
            best, target = self._shown(self.net(*after)), self.target(*after)
        return now[:, None], best[:, None], target[:, None]


def _own(mask: Tensor, over: Tensor) -> Tensor:
    """Parts that are there, in rows of the last row's episode alone, [B, K, A]."""
    row = torch.arange(over.shape[1])
    found: Tensor = mask & (row >= begins(over)[:, -1:])[..., None]
    return found
