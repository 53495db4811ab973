"""States of recurrent networks, of many environments side by side."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

State = dict[str, torch.Tensor]


def of(first: State, lanes: int) -> State:
    """As many copies of a network's first state as there are environments."""
    return {name: value.expand(lanes, *value.shape).clone() for name, value in first.items()}


def begun_anew(state: State, blank: State, started: NDArray[np.bool_]) -> State:
    """The states, blank where an episode has just begun.

    Parameters
    ----------
    state, blank : dict of tensors
        Of all environments, and of one (see `of`).
    started : bool array [N]
    """
    began = torch.from_numpy(started.copy())
    return {
        name: torch.where(began.view((-1,) + (1,) * (value.dim() - 1)), blank[name], value)
        for name, value in state.items()
    }
