"""Nuwa's actor and critic: an LSTM behind one layer, both read its output (nuwa.txt section V)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from models.rl.layout import Layout
from models.rl.networks.module import AgentModule


class Recurrent(nn.Module):
    """Logits of all parts' actions and the value of the state, row by row."""

    def __init__(self, layout: Layout, settings: dict[str, Any]) -> None:
        super().__init__()
        width, cells = settings["width"], settings["cells"]
        self.before = nn.Sequential(nn.Linear(layout.parts * layout.features, width), nn.Tanh())
        self.memory = nn.LSTM(width, cells, batch_first=True)
        self.actor = nn.Linear(cells, layout.parts * layout.actions)
        self.critic = nn.Linear(cells, 1)
        # At first all actions are about as likely.
        nn.init.normal_(self.actor.weight, std=0.01)
        nn.init.zeros_(self.actor.bias)

    def forward(
        self, seen: Tensor, state: tuple[Tensor, Tensor], over: Tensor | None = None
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Go through windows.

        Parameters
        ----------
        seen : float32 tensor [B, L, A, D]
            Standardised.
        state : pair of tensor [B, cells]
            Before the first row.
        over : bool tensor [B, L], optional
            Rows after which nothing is remembered.

        Returns
        -------
        logits : tensor [B, L, A C]
        values : tensor [B, L]
        state : pair of tensor [B, cells]
        """
        inputs = self.before(seen.flatten(2))
        h, c = state[0][None], state[1][None]
        found, length = [], inputs.shape[1]
        # One call for all rows between those after which some window forgets.
        cuts = [] if over is None else (over[:, :-1].any(0).nonzero()[:, 0] + 1).tolist()
        for a, b in zip([0, *cuts], [*cuts, length], strict=True):
            if a and over is not None:
                keep = (~over[:, a - 1]).float()[None, :, None]
                h, c = h * keep, c * keep
            out, (h, c) = self.memory(inputs[:, a:b], (h, c))
            found.append(out)
        whole = torch.cat(found, dim=1) if len(found) > 1 else found[0]
        return self.actor(whole), self.critic(whole)[..., 0], (h[0], c[0])


class RecurrentModule(AgentModule):
    """Acts with the LSTM's state; learns from windows that begin with the state they had."""

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The LSTM with its heads."""
        self.cells = int(settings["cells"])
        return Recurrent(self.layout, settings)

    def get_initial_state(self) -> dict[str, Tensor]:
        """Nothing remembered."""
        return {"h": torch.zeros(self.cells), "c": torch.zeros(self.cells)}

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """Scores are logits, and the critic has its say."""
        logits, values, (h, c) = self.net(seen[:, None], (state["h"], state["c"]))
        return {"scores": self._by_part(logits[:, 0]), "values": values[:, 0]} | {
            "state_out": {"h": h, "c": c}
        }

    def windows(
        self, seen: Tensor, over: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Logits [B, L, A, C] and values [B, L] of windows; as `Recurrent.forward`."""
        logits, values, _ = self.net(seen, state, over)
        return self._by_part(logits), values

    def _by_part(self, logits: Tensor) -> Tensor:
        shape = (*logits.shape[:-1], self.layout.parts, self.layout.actions)
        return self._shown(logits.view(shape))
