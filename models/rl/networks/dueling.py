"""One dueling Q network for each kind of part; a team's value is the sum of its parts' (VDN)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from models.rl.layout import Layout
from models.rl.networks.module import AgentModule


class Dueling(nn.Module):
    """Value of a state plus the advantage of each action over their mean."""

    def __init__(self, features: int, hidden: list[int], actions: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for here, there in pairwise([features, *hidden]):
            layers += [nn.Linear(here, there), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        # Value and advantages from one layer: the first column is the value.
        self.head = nn.Linear(hidden[-1], 1 + actions)

    def forward(self, seen: Tensor) -> Tensor:
        """Q of each action, [..., actions]."""
        value, advantage = self.head(self.body(seen)).tensor_split([1], dim=-1)
        q: Tensor = value + advantage - advantage.mean(-1, keepdim=True)
        return q


class Teams(nn.Module):
    """The networks of all kinds."""

    def __init__(self, layout: Layout, hidden: list[int]) -> None:
        super().__init__()
        self.layout = layout
        counts = range(len(layout.action_counts))
        self.kinds = nn.ModuleList(
            Dueling(layout.feature_counts[k], hidden, layout.action_counts[k]) for k in counts
        )
        order = [part for k in counts for part in layout.parts_of(k)]
        self.places = [torch.tensor(layout.parts_of(k), dtype=torch.int64) for k in counts]
        self.back = None if order == sorted(order) else torch.tensor(order).argsort()

    def forward(self, seen: Tensor) -> Tensor:
        """Q of each part's actions, [..., A, C]; 0 for actions that a part doesn't have."""
        found = []
        for kind, (network, places) in enumerate(zip(self.kinds, self.places, strict=True)):
            own = seen.index_select(-2, places)[..., : self.layout.feature_counts[kind]]
            q = network(own)
            short = self.layout.actions - q.shape[-1]
            found.append(nn.functional.pad(q, (0, short)) if short else q)
        q = torch.cat(found, dim=-2)
        return q if self.back is None else q.index_select(-2, self.back)


class TeamModule(AgentModule):
    """MA-CC's senders and routers (ma-cc.txt section 4.2: two layers with ReLU)."""

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The networks of all kinds."""
        return Teams(self.layout, list(settings["hidden"]))

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """Scores are the Qs."""
        return {"scores": self._shown(self.net(seen))}

    def values(
        self, seen: Tensor, mask: Tensor, over: Tensor, length: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Q of windows of one step: of the first row, and of the second twice.

        Parameters
        ----------
        seen : float32 tensor [B, 2, A, D]
        mask : bool tensor [B, 2, A]
        over : bool tensor [B, 2]
        length : int
            1; a team has no memory.

        Returns
        -------
        now : tensor [B, 1, A, C]
            With a gradient.
        best, target : tensor [B, 1, A, C]
            Of the row after: by the network, and by the one set aside.
        """
        now = self.net(seen[:, :1])
        with torch.no_grad():
            after = seen[:, 1:]
            return now, self._shown(self.net(after)), self.target(after)
