"""Many episodes side by side are what a trainer steps: one layout for every environment.

An environment has *parts*, each of which observes and acts: the subflows of a connection (TCCO),
one receiver (Nuwa), senders and routers (MA-CC). Parts of one *kind* have the same observation and
the same actions, and may share a network. Arrays are allocated once and written by every step, so
whoever wants to keep a value copies it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class BatchEnv(Protocol):
    """N environments of A parts; an observation has up to D values.

    An environment whose episode is over is begun anew by the next step, which ignores its
    actions (``AutoresetMode.NEXT_STEP`` of Gymnasium): then ``started`` is true and its rewards
    are 0. Until that step its arrays hold the end of the episode.

    Attributes
    ----------
    num_envs : int
        N.
    kinds : int64 array [A]
        Kind of each part, from 0.
    action_counts, feature_counts : tuple of int
        Actions, and values of an observation (at most D), of each kind.
    context : int
        How many of the last observations the paper's agent looks at; 1 if it has no memory.
    observations : float32 array [N, A, D]
        From 0 to 1; 0 beyond a kind's ``feature_counts`` and for parts that aren't there.
    mask : bool array [N, A]
        Which parts are there in this episode.
    rewards : float64 array [N, A]
        Each part's reward of the step, 0 for parts that aren't there; a team's is their sum.
    terminated, truncated : bool array [N]
        Whether the step has ended the episode, by itself or by its length.
    started : bool array [N]
        Whether the step began an episode instead of acting.
    stagger : bool
        Whether the next `reset` cuts the first episodes to unlike lengths, so that a batch doesn't
        begin anew all at once.
    """

    num_envs: int
    kinds: NDArray[np.int64]
    action_counts: tuple[int, ...]
    feature_counts: tuple[int, ...]
    context: int
    observations: NDArray[np.float32]
    mask: NDArray[np.bool_]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    started: NDArray[np.bool_]
    stagger: bool

    def reset(self, seed: int) -> None:
        """Begin an episode everywhere; an environment's episodes depend on its number and seed."""
        ...

    def step(self, actions: NDArray[np.int64]) -> None:
        """Act in every environment, int64 array [N, A]; of parts that aren't there it is ignored.

        Raises
        ------
        ValueError
            For an action that a part doesn't have.
        """
        ...

    def get_state(self) -> dict[str, Any]:
        """All that decides what comes next: numbers, strings, bytes, arrays, dicts and lists."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where `get_state` was called, to the bit."""
        ...

    def close(self) -> None:
        """End its threads."""
        ...
