"""Training rows are changed in ways that keep their label.

Exchanging the subflows or scaling RTTs and rates changes nothing that the network sees, by its
construction; what is left are changes of time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from features.series_pair import CELLS
from models.sbd.neural.network import SIDE

LEAST = 0.6
"""Share of a window that is kept, at least."""
REACH = 3
"""Cells by which one subflow's series may come later, about one larger min RTT."""


def stretch(rows: Tensor, rng: Generator) -> Tensor:
    """A random part of the window, stretched to the whole of it; both subflows alike."""
    count = len(rows)
    share = LEAST + (1 - LEAST) * torch.rand(count, 1, generator=rng)
    start = (1 - share) * torch.rand(count, 1, generator=rng)
    place = torch.arange(CELLS).float()[None] + 0.5
    cell = ((start * CELLS) + place * share).long().clamp(max=CELLS - 1)
    return _gathered(rows, cell[:, None].expand(-1, 2, -1))


def jitter(rows: Tensor, rng: Generator) -> Tensor:
    """One subflow a little later: paths to a shared queue are of unlike length."""
    shift = torch.randint(-REACH, REACH + 1, (len(rows), 1, 1), generator=rng)
    side = torch.tensor([0, 1])[None, :, None]
    cell = (torch.arange(CELLS)[None, None] + shift * side).clamp(0, CELLS - 1)
    return _gathered(rows, cell)


def _gathered(rows: Tensor, cell: Tensor) -> Tensor:
    """The window's three series at other cells, int64 array [N, 2, CELLS]; the rest as it is."""
    pair = rows.reshape(-1, 2, SIDE)
    series = pair[:, :, : 3 * CELLS].reshape(-1, 2, 3, CELLS)
    moved = series.gather(3, cell[:, :, None].expand(-1, -1, 3, -1))
    return torch.cat([moved.flatten(2), pair[:, :, 3 * CELLS :]], dim=2).reshape(rows.shape)


AUGMENTATIONS: dict[str, Callable[[Tensor, Generator], Tensor]] = {
    "jitter": jitter,
    "stretch": stretch,
}
"""Name in `Neural.augment` -> ``function(rows, rng) -> rows``."""
