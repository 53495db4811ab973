"""Many MA-CC environments are stepped side by side in threads, which PettingZoo doesn't offer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.envs.macc import parallel_env

Stacked = dict[str, NDArray[Any]]
"""Agent -> its values, one row per environment."""


class Teams:
    """Environments of `models.envs.macc.parallel_env`, each agent's values stacked over them.

    As in `models.envs.vector.ThreadVectorEnv` an environment whose episode is over is reset by
    the next step, whose actions it ignores; results don't depend on the number of threads.

    Parameters
    ----------
    num_envs : int
    threads : int, optional
        By default as many as the process may use cores.
    **settings
        As for `parallel_env`, of every environment.
    """

    def __init__(self, num_envs: int, threads: int | None = None, **settings: Any) -> None:
        self.envs = [parallel_env(**settings) for _ in range(num_envs)]
        self.possible_agents = self.envs[0].possible_agents
        self.threads = threads or min(num_envs, len(os.sched_getaffinity(0)))
        self._over = np.zeros(num_envs, bool)
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="team")

    def reset(self, seed: int | None = None) -> tuple[Stacked, list[dict[str, Any]]]:
        """Begin an episode everywhere; environment i is seeded with ``seed + i``.

        Returns
        -------
        observations : dict
            Agent -> float32 array [num_envs, features].
        infos : list of dict
            One per environment, by agent.
        """
        seeds = [None if seed is None else seed + i for i in range(len(self.envs))]
        results = list(self._pool.map(lambda env, one: env.reset(seed=one), self.envs, seeds))
        self._over[:] = False
        return self._stacked(lambda i, agent: results[i][0][agent]), [r[1] for r in results]

    def step(
        self, actions: Mapping[str, NDArray[np.integer[Any]]]
    ) -> tuple[Stacked, Stacked, NDArray[np.bool_], list[dict[str, Any]]]:
        """Step everywhere.

        Parameters
        ----------
        actions : mapping
            Agent -> its action in each environment, int array [num_envs].

        Returns
        -------
        observations : dict
            Agent -> float32 array [num_envs, features].
        rewards : dict
            Agent -> float64 array [num_envs], 0 if the step was a reset.
        over : bool array [num_envs]
            Whose episode this step ended: all agents' at once, by truncation.
        infos : list of dict
        """

        def one(i: int) -> tuple[Any, dict[str, float], bool, dict[str, Any]]:
            env = self.envs[i]
            if self._over[i]:
                observations, infos = env.reset()
                return observations, dict.fromkeys(self.possible_agents, 0.0), False, infos
            chosen = {agent: actions[agent][i] for agent in self.possible_agents}
            observations, rewards, _, truncations, infos = env.step(chosen)
            return observations, rewards, all(truncations.values()), infos

        results = list(self._pool.map(one, range(len(self.envs))))
        self._over = np.array([over for _, _, over, _ in results])
        return (
            self._stacked(lambda i, agent: results[i][0][agent]),
            self._stacked(lambda i, agent: results[i][1][agent]),
            self._over.copy(),
            [infos for *_, infos in results],
        )

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _stacked(self, value: Callable[[int, str], Any]) -> Stacked:
        count = range(len(self.envs))
        return {agent: np.array([value(i, agent) for i in count]) for agent in self.possible_agents}
