"""Many environments are stepped in threads: the simulator advances without the GIL."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate

from models.envs.nuwa import NuwaEnv
from models.envs.tcco import TccoEnv


class ThreadVectorEnv(SyncVectorEnv):
    """A `gymnasium.vector.SyncVectorEnv` whose environments are stepped in threads.

    The results are those of stepping one after the other. An environment whose episode is over
    is reset by the next step, whose action it ignores (`AutoresetMode.NEXT_STEP`).

    Parameters
    ----------
    env_fns : sequence of callable
        One maker per environment.
    threads : int, optional
        By default as many as the process may use cores.
    """

    def __init__(
        self, env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]], threads: int | None = None
    ) -> None:
        super().__init__(env_fns, autoreset_mode=AutoresetMode.NEXT_STEP)
        self.threads = threads or min(len(self.envs), len(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="env")

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode everywhere; an int seeds the environments with it and what follows."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        every = seeds or [None] * self.num_envs
        results = self._everywhere(lambda i: self.envs[i].reset(seed=every[i], options=options))
        infos: dict[str, Any] = {}
        for i, (observation, info) in enumerate(results):
            self._env_obs[i] = observation
            infos = self._add_info(infos, info, i)
        self._terminations[:] = self._truncations[:] = self._autoreset_envs[:] = False
        return self._gather(), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step everywhere."""
        action = list(iterate(self.action_space, actions))
        results = self._everywhere(lambda i: self._step(i, action[i]))
        infos: dict[str, Any] = {}
        for i, (observation, reward, terminated, truncated, info) in enumerate(results):
            self._env_obs[i], self._rewards[i] = observation, reward
            self._terminations[i], self._truncations[i] = terminated, truncated
            infos = self._add_info(infos, info, i)
        self._autoreset_envs = np.logical_or(self._terminations, self._truncations)
        ends = self._terminations.copy(), self._truncations.copy()
        return self._gather(), self._rewards.copy(), *ends, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments and end the threads."""
        super().close_extras(**kwargs)
        self._pool.shutdown()

    def _everywhere(self, work: Callable[[int], Any]) -> list[Any]:
        """Results for all environments; a thread takes its share in one go."""
        if self.threads == 1:
            return [work(i) for i in range(self.num_envs)]
        shares = np.array_split(np.arange(self.num_envs), self.threads)
        parts = self._pool.map(lambda share: [work(int(i)) for i in share], shares)
        return [result for part in parts for result in part]

    def _step(self, i: int, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        env: gymnasium.Env[Any, Any] = self.envs[i]
        if self._autoreset_envs[i]:
            observation, info = env.reset()
            return observation, 0.0, False, False, info
        observation, reward, terminated, truncated, info = env.step(action)
        return observation, float(reward), terminated, truncated, info

    def _gather(self) -> Any:
        space = self.single_observation_space
        self._observations = concatenate(space, self._env_obs, self._observations)
        return copy.copy(self._observations)


def tcco(num_envs: int = 1, threads: int | None = None, **settings: Any) -> ThreadVectorEnv:
    """Many of ``cczoo/TCCO-v0``; ``settings`` as for `TccoEnv`."""
    return ThreadVectorEnv([lambda: TccoEnv(**settings)] * num_envs, threads)


def nuwa(num_envs: int = 1, threads: int | None = None, **settings: Any) -> ThreadVectorEnv:
    """Many of ``cczoo/Nuwa-v0``; ``settings`` as for `NuwaEnv`."""
    return ThreadVectorEnv([lambda: NuwaEnv(**settings)] * num_envs, threads)
