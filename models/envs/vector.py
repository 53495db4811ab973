"""Batches as gymnasium's vector environments, for whoever trains by that interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from data.errors import UserError
from features import nuwa as nuwa_features
from features import tcco as tcco_features
from features.intervals import scaled
from features.spec import Feature
from models.envs.nuwa import NuwaBatch
from models.envs.tcco import TccoBatch

Observations = NDArray[np.float32]


class BatchVectorEnv(VectorEnv[Observations, NDArray[np.int64], Any]):
    """Steps a batch; observations have the context that the single environment's have.

    An environment whose episode is over is begun anew by the next step, whose action it ignores
    (`AutoresetMode.NEXT_STEP`).

    Parameters
    ----------
    batch : TccoBatch or NuwaBatch
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, batch: TccoBatch | NuwaBatch) -> None:
        self.batch, self.num_envs = batch, batch.num_envs
        parts, count = len(batch.kinds), batch.action_counts[0]
        self._features: tuple[Feature, ...] = tcco_features.FEATURES
        self._half: tuple[float, ...] = tcco_features.HALF
        action: Space[Any] = MultiDiscrete(np.full(parts, count, np.int64))
        shape: tuple[int, ...] = (batch.context, parts, batch.feature_counts[0])
        if isinstance(batch, NuwaBatch):
            self._features, self._half = nuwa_features.FEATURES, nuwa_features.HALF
            action, shape = Discrete(count), (batch.context, batch.feature_counts[0])
        self.single_action_space = action
        self.single_observation_space = Box(0.0, 1.0, shape, np.float32)
        self.action_space = batch_space(action, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode everywhere.

        Raises
        ------
        UserError
            For a list of seeds: an environment's seed is its number and the seed of all.
        """
        if isinstance(seed, list):
            raise UserError("reset: one seed for all, not a list: environments differ by number")
        super().reset(seed=seed)
        self.batch.reset(int(self.np_random.integers(1 << 31)))
        return self._observations(), self._infos()

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step everywhere."""
        batch = self.batch
        batch.step(np.asarray(actions, np.int64).reshape(self.num_envs, -1))
        ends = batch.terminated.copy(), batch.truncated.copy()
        return self._observations(), batch.rewards.sum(axis=1), *ends, self._infos()

    def close_extras(self, **kwargs: Any) -> None:
        """End the batch's threads."""
        self.batch.close()

    def _observations(self) -> Observations:
        ring, length = self.batch.ring, self.batch.ring.shape[1]
        ages = np.arange(1 - self.batch.context, 1)
        places = (self.batch.cursor[:, None] + ages) % length
        recent = ring[np.arange(self.num_envs)[:, None], places]
        return scaled(recent, self._features, self._half)

    def _infos(self) -> dict[str, Any]:
        return {"time_us": self.batch.intervals * self.batch.interval_us}


def tcco(num_envs: int = 1, threads: int | None = None, **settings: Any) -> BatchVectorEnv:
    """Many of ``cczoo/TCCO-v0``; ``settings`` as for `TccoBatch`."""
    return BatchVectorEnv(TccoBatch(num_envs, threads=threads, **settings))


def nuwa(num_envs: int = 1, threads: int | None = None, **settings: Any) -> BatchVectorEnv:
    """Many of ``cczoo/Nuwa-v0``; ``settings`` as for `NuwaBatch`."""
    return BatchVectorEnv(NuwaBatch(num_envs, threads=threads, **settings))
