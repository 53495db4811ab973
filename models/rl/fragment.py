"""What a runner brings home: some steps of all its environments, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class Fragment:
    """T steps of N environments: row t is an observation, what was done, and what came of it.

    The next row of a lane holds the observation that came of it, so none is stored twice. Where
    ``over`` is set the observation is the last of its episode: nothing was done, and the next row
    belongs to another episode.

    Attributes
    ----------
    worker : int
        Number of the runner, 0 for the one in the trainer's process.
    fresh : bool
        Whether the runner has just begun: its first row doesn't follow on its last fragment.
    observations : float32 array [T, N, A, D]
    mask : bool array [T, N, A]
        Parts that are there.
    actions : int64 array [T, N, A]
    rewards : float32 array [T, N]
        Sums over the parts.
    terminated, over : bool array [T, N]
    own : float32 array [T, N, A]
        Each part's own reward.
    returns : list of float
        Sum of rewards of each episode that ended.
    lengths, lanes : list of int
        Steps and environment of each.
    logp : float32 array [T, N], optional
        Logarithm of the odds with which the actions were chosen.
    values : float32 array [T + 1, N], optional
        What the critic expected of each row and of the one after the last.
    states : dict of array [T / L, N, ...]
        Recurrent state before every L-th row, if asked for.
    """

    worker: int
    fresh: bool
    observations: NDArray[np.float32]
    mask: NDArray[np.bool_]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    over: NDArray[np.bool_]
    own: NDArray[np.float32]
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    logp: NDArray[np.float32] | None = None
    values: NDArray[np.float32] | None = None
    states: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @classmethod
    def empty(cls, worker: int, fresh: bool, rows: int, shape: tuple[int, int, int]) -> Fragment:
        """Arrays to be filled, for N environments of A parts with D features each."""
        lanes, parts, features = shape
        arrays: dict[str, Any] = {
            "observations": np.empty((rows, lanes, parts, features), np.float32),
            "mask": np.empty((rows, lanes, parts), bool),
            "actions": np.empty((rows, lanes, parts), np.int64),
            "rewards": np.empty((rows, lanes), np.float32),
            "terminated": np.empty((rows, lanes), bool),
            "over": np.empty((rows, lanes), bool),
            "own": np.empty((rows, lanes, parts), np.float32),
        }
        return cls(worker, fresh, **arrays)

    @property
    def steps(self) -> int:
        """Steps in which something was done."""
        return int(self.over.size - self.over.sum())
