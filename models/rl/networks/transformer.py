"""TCCO's Q network: a Transformer over the last observations of all subflows (tcco.txt fig. 7)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.rl.layout import Layout
from models.rl.networks.module import AgentModule


class Block(nn.Module):
    """Attention and a feed-forward net, each with residual gate and LayerNorm after (Table I)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.both = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, tokens: Tensor, allowed: Tensor, last: bool) -> Tensor:
        """Tokens after the block.

        Parameters
        ----------
        tokens : tensor [B, L, width]
        allowed : bool tensor [B, 1, L, L], or [B, 1, 1, L] for the last alone
            Which token may look at which.
        last : bool
            Whether only the last token is wanted.
        """
        return self.attend(tokens[:, -1:] if last else tokens, self.both(tokens), allowed)

    def attend(self, asking: Tensor, both: Tensor, allowed: Tensor) -> Tensor:
        """As `forward`: tokens that ask, and keys and values side by side of those looked at."""
        q = self._split(self.query(asking))
        k, v = (self._split(x) for x in both.chunk(2, dim=-1))
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        found = self.out(found.transpose(1, 2).flatten(2))
        asking = self.norms[0](asking + found)
        result: Tensor = self.norms[1](asking + self.feed(asking))
        return result

    def _split(self, tokens: Tensor) -> Tensor:
        batch, length, width = tokens.shape
        return tokens.view(batch, length, self.heads, width // self.heads).transpose(1, 2)


class Transformer(nn.Module):
    """Q values of all subflows from a context.

    Each subflow's features go through the same two layers, side by side they are embedded into a
    token, and a subflow's head sees the token and its own features again. With all parts' heads
    summed this is as good as a head over all joint actions, and grows with their number only.
    """

    def __init__(self, layout: Layout, settings: dict[str, Any]) -> None:
        super().__init__()
        inner, width = settings["subflow_width"], settings["width"]
        self.each = nn.Sequential(
            nn.Linear(layout.features, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU()
        )
        self.embed = nn.Linear(layout.parts * inner, width)
        self.position = nn.Parameter(0.02 * torch.randn(settings["context"], width))
        self.blocks = nn.ModuleList(
            Block(width, settings["heads"]) for _ in range(settings["layers"])
        )
        self.head = nn.Linear(width + inner, layout.actions)

    def forward(self, seen: Tensor, mask: Tensor, first: Tensor, last: bool = False) -> Tensor:
        """Q of each action after each observation.

        Parameters
        ----------
        seen : float32 tensor [B, L, A, D]
            Standardised observations.
        mask : bool tensor [B, L, A]
        first : int64 tensor [B, L]
            Row in which the episode of each row begins, or 0 if before the window.
        last : bool
            Whether only the last row is wanted.

        Returns
        -------
        tensor [B, L, A, C], or [B, 1, A, C]
        """
        tokens, own = self.tokens(seen, mask, first, last)
        spread = tokens[:, :, None].expand(-1, -1, own.shape[2], -1)
        found: Tensor = self.head(torch.cat([spread, own], dim=-1))
        return found

    def tokens(
        self, seen: Tensor, mask: Tensor, first: Tensor, last: bool
    ) -> tuple[Tensor, Tensor]:
        """What the heads see, as for `forward`: [B, L, width] and each subflow's [B, L, A, E]."""
        own = self.each(seen) * mask[..., None]
        tokens = self.attended(self.embed(own.flatten(2)), first, last)
        return tokens, own[:, -1:] if last else own

    def attended(self, embedded: Tensor, first: Tensor, last: bool) -> Tensor:
        """Tokens [B, L, width] after all blocks, of embedded rows; ``first``, ``last`` as above."""
        row = torch.arange(embedded.shape[1])
        tokens = embedded + self.position[row - first]
        allowed = ((row <= row[:, None]) & (row >= first[:, :, None]))[:, None]
        for number, block in enumerate(self.blocks):
            final = last and number == len(self.blocks) - 1
            tokens = block(tokens, allowed[:, :, -1:] if final else allowed, final)
        return tokens


class TransformerModule(AgentModule):
    """Acts by the context that it keeps as its state; learns at all positions of a window."""

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The Transformer."""
        self.context = int(settings["context"])
        return Transformer(self.layout, settings)

    def get_initial_state(self) -> dict[str, Tensor]:
        """An empty context of one environment."""
        shape = (self.context, self.layout.parts, self.layout.features)
        return {
            "seen": torch.zeros(shape),
            "mask": torch.zeros(shape[:2], dtype=torch.bool),
            "count": torch.zeros((), dtype=torch.int64),
        }

    def act(self, seen: Tensor, mask: Tensor, state: dict[str, Tensor]) -> dict[str, Any]:
        """Scores are the Qs after the last observation."""
        context = torch.cat([state["seen"][:, 1:], seen[:, None]], dim=1)
        there = torch.cat([state["mask"][:, 1:], mask[:, None]], dim=1)
        count = (state["count"] + 1).clamp(max=self.context)
        first = (self.context - count)[:, None]
        # Rows before the episode's are looked at by none but themselves.
        first = torch.minimum(first, torch.arange(self.context))
        q = self.net(context, there, first, last=True)[:, 0]
        after = {"seen": context, "mask": there, "count": count}
        return {"scores": self._shown(q), "state_out": after}

    def values(
        self, seen: Tensor, mask: Tensor, over: Tensor, length: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Q of windows: of their rows, and of the row after each twice.

        Parameters
        ----------
        seen : float32 tensor [B, L + 1, A, D]
        mask : bool tensor [B, L + 1, A]
        over : bool tensor [B, L + 1]
            Rows that are the last of their episode.
        length : int
            L.

        Returns
        -------
        now : tensor [B, L, A, C]
            With a gradient.
        best, target : tensor [B, L, A, C]
            Of the row after each: by the network, and by the one set aside.
        """
        first, after = begins(over[:, :-1]), begins(over[:, 1:])
        now = self.net(seen[:, :-1], mask[:, :-1], first)
        with torch.no_grad():
            late = self.net(seen[:, 1:], mask[:, 1:], after, last=True)
            # All rows but the last have been seen in their context already.
            best = torch.cat([now.detach()[:, 1:], late], dim=1)
            return now, self._shown(best), self.target(seen[:, 1:], mask[:, 1:], after)


def begins(over: Tensor) -> Tensor:
    """Row in which the episode of each row begins, int64 tensor [B, L]; 0 if before the window."""
    row = torch.arange(1, over.shape[1])
    starts = torch.where(over[:, :-1], row, torch.zeros_like(row))
    found = starts.cummax(dim=1).values
    return functional.pad(found, (1, 0))
