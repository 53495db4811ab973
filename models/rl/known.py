"""Tiny problems whose best return is known: what a trainer must be able to learn.

Both are `models.envs.batch.BatchEnv`s in plain numpy. What chance decides is a hash of seed,
environment, episode and step, so an environment's episodes depend on its number and the seed alone
and the state is a few arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counter = NDArray[np.uint64]


def mixed(*parts: Counter | int) -> Counter:
    """Hash of counters, uint64 array of their common shape (SplitMix64's finaliser, chained)."""
    value = np.zeros(1, np.uint64)
    for part in parts:
        value = value + np.asarray(part, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        value = value ^ (value >> np.uint64(31))
    return value


class _Known:
    """What both problems share: arrays, episodes that begin anew, state."""

    kinds: NDArray[np.int64]
    action_counts: tuple[int, ...]
    feature_counts: tuple[int, ...]
    stagger = False

    def __init__(self, num_envs: int, context: int, length: int) -> None:
        parts, features = len(self.kinds), max(self.feature_counts)
        self.num_envs, self.context, self.length = num_envs, context, length
        self.observations = np.zeros((num_envs, parts, features), np.float32)
        self.mask = np.ones((num_envs, parts), bool)
        self.rewards = np.zeros((num_envs, parts))
        self.terminated = np.zeros(num_envs, bool)
        self.truncated = np.zeros(num_envs, bool)
        self.started = np.zeros(num_envs, bool)
        self._counts = np.array([self.action_counts[kind] for kind in self.kinds])
        self._number = np.arange(num_envs, dtype=np.uint64)
        self._episode = np.zeros(num_envs, np.uint64)
        self._step = np.zeros(num_envs, np.int64)
        self._seed = 0

    def reset(self, seed: int) -> None:
        """Begin an episode everywhere."""
        self._seed = seed
        self._episode[:] = 0
        self._step[:] = 0
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False
        self.started[:] = True
        self._observe()

    def step(self, actions: NDArray[np.int64]) -> None:
        """Act everywhere, int64 array [N, A]."""
        over = self.terminated | self.truncated
        acting = ~over
        if ((actions < 0) | (actions >= self._counts))[acting].any():
            raise ValueError("actions: a part doesn't have this action")
        self.rewards[:] = np.where(acting[:, None], self._paid(actions), 0.0)
        self._step += acting
        self._step[over] = 0
        self._episode[over] += np.uint64(1)
        self.started[:] = over
        self.terminated[:] = acting & (self._step >= self.length)
        self._observe()

    def get_state(self) -> dict[str, Any]:
        """All that decides what comes next."""
        return {"seed": self._seed, **{name: getattr(self, name).copy() for name in self._arrays()}}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where `get_state` was called."""
        self._seed = state["seed"]
        for name in self._arrays():
            getattr(self, name)[...] = state[name]

    def close(self) -> None:
        """Nothing is held."""

    def _arrays(self) -> tuple[str, ...]:
        shown = ("observations", "mask", "rewards", "terminated", "truncated", "started")
        return (*shown, "_episode", "_step")

    def _paid(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        raise NotImplementedError

    def _observe(self) -> None:
        raise NotImplementedError


class Recall(_Known):
    """A cue of the first step must be repeated at the last: the return is 1 at best, 0.5 by chance.

    Parameters
    ----------
    num_envs : int
    delay : int
        Steps from the cue to the answer; those between show nothing.
    """

    kinds = np.zeros(1, np.int64)
    action_counts = (2,)
    feature_counts = (3,)
    BEST, CHANCE = 1.0, 0.5

    def __init__(self, num_envs: int, delay: int = 4) -> None:
        super().__init__(num_envs, delay + 1, delay + 1)
        self.reset(0)

    def _cue(self) -> NDArray[np.int64]:
        cue: Counter = mixed(self._seed, self._number, self._episode) & np.uint64(1)
        return cue.astype(np.int64)

    def _paid(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        asked = self._step == self.length - 1
        paid: NDArray[np.bool_] = asked & (actions[:, 0] == self._cue())
        return paid.astype(np.float64)[:, None]

    def _observe(self) -> None:
        cue, first = self._cue(), self._step == 0
        self.observations[:, 0, 0] = first & (cue == 0)
        self.observations[:, 0, 1] = first & (cue == 1)
        self.observations[:, 0, 2] = self._step == self.length - 1


class Matrix(_Known):
    """Two parts of two kinds are paid by a table of both their actions, which the state chooses.

    A step pays 1 at best. Both see the state; each gets half of the pay.

    Parameters
    ----------
    num_envs : int
    length : int
        Steps of an episode.
    """

    kinds = np.array([0, 1])
    action_counts = (3, 2)
    feature_counts = (3, 2)
    # Each row's and each column's mean tell the best action, so that a sum of Qs can find it.
    PAY = np.array([[[1.0, 0.5], [0.4, 0.2], [0.3, 0.1]], [[0.0, 0.2], [0.3, 0.4], [0.5, 1.0]]])
    BEST = 1.0

    def __init__(self, num_envs: int, length: int = 5) -> None:
        super().__init__(num_envs, 1, length)
        self.reset(0)

    def _state(self) -> NDArray[np.int64]:
        step = self._step.astype(np.uint64)
        state: Counter = mixed(self._seed, self._number, self._episode, step) & np.uint64(1)
        return state.astype(np.int64)

    def _paid(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        legal = np.clip(actions, 0, self._counts - 1)
        pay: NDArray[np.float64] = self.PAY[self._state(), legal[:, 0], legal[:, 1]] / 2
        return np.repeat(pay[:, None], 2, axis=1)

    def _observe(self) -> None:
        state = self._state()
        self.observations[:, :, 0] = (state == 0)[:, None]
        self.observations[:, :, 1] = (state == 1)[:, None]
        self.observations[:, 0, 2] = self._step / self.length


def recall(num_envs: int, threads: int, settings: Mapping[str, Any]) -> Recall:
    """Maker of `Recall`, as `models.rl.runner.make` calls it."""
    return Recall(num_envs, **settings)


def matrix(num_envs: int, threads: int, settings: Mapping[str, Any]) -> Matrix:
    """Maker of `Matrix`, as `models.rl.runner.make` calls it."""
    return Matrix(num_envs, **settings)
