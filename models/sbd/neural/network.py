"""A Siamese temporal convolution judges by a pair of series whether they share a bottleneck.

One row of ``features.series_pair`` goes in, the log-odds of SB come out. The rows hold plain units
(us, kbit/s); :class:`Channels` makes them scale-free, so that training, ONNX and every later user
of the model share one definition. Both subflows go through the same encoder and the head sees only
what doesn't change when they are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.series_pair import CELLS, LONG_CELLS

SIDE = 3 * CELLS + LONG_CELLS + 1
"""Columns of one subflow."""
LAGS = (0, 1, 2, 4)
"""Lags of the cross-correlation, in pairs of cells: 0 to 3 larger min RTTs."""
HIGHEST = 8.0
"""Channels are cut off here: some networks see queues or rates far above their mean."""


class Channels(nn.Module):
    """Rows in plain units to scale-free channels.

    A queueing delay is the RTT less the smallest RTT known at the window's end; both subflows'
    are divided by their common mean, as ``smartsbd-plus`` does, and given again each in its own
    standard deviations. Throughput is in units of the subflow's own mean. Neither absolute RTTs
    nor rates nor the ratio of the smallest RTTs are seen: they would reveal the set-up.
    """

    WINDOW = 4
    """Channels of the window: queue, its own shape, congested, throughput."""
    LONG = 3
    """Channels of the long view: queue, its own shape, whether it is known."""

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Make the channels.

        Parameters
        ----------
        rows : float32 array [N, 2 * SIDE]

        Returns
        -------
        window : float32 array [N, 2, WINDOW, CELLS]
        long : float32 array [N, 2, LONG, LONG_CELLS]
        """
        pair = rows.reshape(-1, 2, SIDE)
        rtt = pair[:, :, :CELLS]
        congested = pair[:, :, CELLS : 2 * CELLS]
        throughput = pair[:, :, 2 * CELLS : 3 * CELLS]
        long_rtt = pair[:, :, 3 * CELLS : -1]
        smallest = torch.minimum(rtt.amin(dim=2, keepdim=True), pair[:, :, -1:])
        queue = rtt - smallest
        rate = throughput / throughput.mean(dim=2, keepdim=True).clamp(min=1.0)
        window = torch.stack([_common(queue), _own(queue), congested, _cut(rate - 1)], dim=2)
        known = (long_rtt > 0).to(rows.dtype)
        long_queue = (long_rtt - smallest).clamp(min=0.0) * known
        share = known.mean(dim=2, keepdim=True).clamp(min=1 / LONG_CELLS)
        long = torch.stack([_common(long_queue, share), _own(long_queue, known), known], dim=2)
        return window, long


def _common(queue: Tensor, share: Tensor | float = 1.0) -> Tensor:
    """Delays [N, 2, points] in units of the mean of both (1 us at least), as a logarithm."""
    mean = (queue.mean(dim=2, keepdim=True) / share).mean(dim=1, keepdim=True).clamp(min=1.0)
    return torch.log1p((queue / mean).clamp(max=HIGHEST * HIGHEST))


def _own(queue: Tensor, known: Tensor | None = None) -> Tensor:
    """Each subflow's delays less their mean in their own standard deviations; 0 if constant."""
    weight = torch.ones_like(queue) if known is None else known
    count = weight.sum(dim=2, keepdim=True).clamp(min=1.0)
    centred = (queue - (queue * weight).sum(dim=2, keepdim=True) / count) * weight
    spread = ((centred * centred).sum(dim=2, keepdim=True) / count + 1.0).sqrt()
    return _cut(centred / spread)


def _cut(value: Tensor) -> Tensor:
    return value.clamp(min=-HIGHEST, max=HIGHEST)


class Block(nn.Module):
    """A dilated convolution with a residual connection."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, x: Tensor) -> Tensor:
        """[N, width, points] to the same."""
        changed: Tensor = functional.relu(self.norm(self.convolution(x)))
        return x + changed


class Encoder(nn.Module):
    """Halves the resolution, then looks further and further around."""

    def __init__(self, channels: int, width: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.stem = nn.Conv1d(channels, width, 5, stride=2, padding=2)
        self.blocks = nn.ModuleList(Block(width, d) for d in dilations)

    def forward(self, x: Tensor) -> Tensor:
        """[N, channels, points] to [N, width, points / 2]."""
        x = functional.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        encoded: Tensor = x
        return encoded


class Comparison(nn.Module):
    """What two encoded series have in common; the same whichever comes first."""

    PER_CHANNEL = len(LAGS) + 3

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """[N, width, points] twice to [N, width * PER_CHANNEL].

        Per channel: the correlation at the lags (mean of both directions), the mean distance, and
        sum and distance of the means.
        """
        one, other = _standard(first), _standard(second)
        parts = []
        for lag in LAGS:
            end = one.shape[2] - lag
            there = (one[:, :, :end] * other[:, :, lag:]).mean(dim=2)
            back = (other[:, :, :end] * one[:, :, lag:]).mean(dim=2)
            parts.append((there + back) / 2)
        mean, mean_other = first.mean(dim=2), second.mean(dim=2)
        parts += [
            (first - second).abs().mean(dim=2),
            mean + mean_other,
            (mean - mean_other).abs(),
        ]
        return torch.cat(parts, dim=1)


def _standard(x: Tensor) -> Tensor:
    """Each channel less its mean, in its standard deviation; 0 if it is constant."""
    centred = x - x.mean(dim=2, keepdim=True)
    return centred / ((centred * centred).mean(dim=2, keepdim=True) + 1e-3).sqrt()


class PairNetwork(nn.Module):
    """The whole classifier.

    Parameters
    ----------
    width : int
        Channels of the encoders, a multiple of 4.
    dilations : sequence of int
        Dilations of the window's encoder, one block each.
    hidden : int
        Width of the head.
    dropout : float
        Share of numbers dropped before the head.
    long : bool
        Look also at the windows before.
    """

    def __init__(
        self,
        width: int = 16,
        dilations: Sequence[int] = (1, 2, 4, 8),
        hidden: int = 32,
        dropout: float = 0.1,
        *,
        long: bool = False,
    ) -> None:
        super().__init__()
        self.channels = Channels()
        self.window = Encoder(Channels.WINDOW, width, dilations)
        self.long = Encoder(Channels.LONG, width, dilations[:3]) if long else None
        self.compare = Comparison()
        found = width * Comparison.PER_CHANNEL * (2 if long else 1)
        self.head = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(found, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Log-odds of SB, float32 array [N], of rows float32 array [N, 2 * SIDE]."""
        window, long = self.channels(rows)
        parts = [self._compared(self.window, window)]
        if self.long is not None:
            parts.append(self._compared(self.long, long))
        logit: Tensor = self.head(torch.cat(parts, dim=1)).squeeze(1)
        return logit

    def _compared(self, encoder: Encoder, pair: Tensor) -> Tensor:
        both = encoder(pair.flatten(0, 1)).unflatten(0, (-1, 2))
        compared: Tensor = self.compare(both[:, 0], both[:, 1])
        return compared


def parameters(network: nn.Module) -> int:
    """Trainable numbers."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)
