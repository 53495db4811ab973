"""Nuwa's environment: an agent tunes k of the receiver's control (nuwa.txt section V)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from pydantic import Field

from data.errors import UserError
from data.netsim.network import Network
from data.strict import Strict
from features import nuwa
from features.intervals import scaled
from models.envs import nuwa_loop
from models.envs.batching import Batching
from models.envs.logged import Logged, Slot
from models.envs.nuwa_loop import ACTIONS
from models.envs.nuwa_reward import NuwaReward
from models.envs.samplers import Sampler, wireless

Observation = NDArray[np.float32]
Reward = Callable[[float, float, float], float]


class NuwaParams(Strict):
    """Settings of the environment."""

    observation: nuwa.NuwaObservation = nuwa.NuwaObservation()
    history: int = Field(7, ge=0)
    """n of eq. 10: vectors before the present one (ours)."""
    steps: int = Field(800, ge=1)
    """Steps of an episode (section V.B)."""
    start_intervals: int = Field(20, ge=1)
    """Intervals after which the agent begins even if slow start isn't over (ours)."""


class NuwaBatch(Batching):
    """Many connections side by side (`models.envs.batch.BatchEnv`), each with one receiver.

    Parameters
    ----------
    num_envs : int
    sampler : Sampler, optional
        Makes the scenario of an episode; its first flow, single-path, is the agent's, and other
        flows without a ``cc`` of their own run Nuwa with a fixed k.
    reward : NuwaReward, optional
    params : NuwaParams or mapping, optional
    threads : int, optional
    **options
        As for `Batching`.

    Raises
    ------
    UserError
        On reset, when the scenario's first flow has more than one path.
    """

    kept = ("memory", "ring", "cursor", "counted", "loss_rate")

    def __init__(
        self,
        num_envs: int = 1,
        sampler: Sampler = wireless,
        reward: NuwaReward | None = None,
        params: NuwaParams | Mapping[str, Any] | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        p = self.params = NuwaParams.parse(params or {}, "params")
        n, d = num_envs, len(nuwa.FEATURES)
        self.action_counts, self.feature_counts = (len(ACTIONS),), (d,)
        self.context = p.history + 1
        interval_us = p.observation.interval_us
        super().__init__(n, sampler, "nuwa", interval_us, p.steps, [0], threads, **options)
        self.memory = np.zeros((n, d))
        self.ring = np.zeros((n, self.context, d))
        self.cursor = np.zeros(n, np.int64)
        self.counted = np.zeros((n, len(nuwa_loop.COUNTED)), np.int64)
        self.loss_rate = np.zeros(n)
        self._bind(nuwa_loop, p.model_dump(), reward=(reward or NuwaReward()).numbers())

    def history(self, i: int) -> NDArray[np.float64]:
        """An environment's last vectors in their units, oldest first: [context, 7]."""
        return np.roll(self.ring[i], -1 - int(self.cursor[i]), axis=0)

    def gain(self, i: int) -> float:
        """K of an environment's receiver."""
        return float(self.networks[i].subflows(int(self.own[i]))["agent_k"][0])

    def _check(self, i: int, network: Network) -> None:
        paths = len(network.subflows(int(self.own[i])))
        if paths != 1:
            raise UserError(f"scenario: {paths} paths where Nuwa's environment has one")

    def _fresh(self, i: int, network: Network) -> None:
        self.mask[i] = True
        self.cursor[i] = self.loss_rate[i] = 0
        self.memory[i], self.ring[i], self.counted[i] = 0.0, 0.0, 0

    def places(self, i: int) -> NDArray[np.int64]:
        """Places (`data.netsim.readings`) of an environment's parts."""
        return np.array([int(self.networks[i].connection(int(self.own[i]))["sub0"])])


class NuwaEnv(Logged, gymnasium.Env[Observation, np.int64]):
    """``cczoo/Nuwa-v0``: a batch of one.

    Parameters
    ----------
    sampler, params
        As for `NuwaBatch`.
    reward : callable, optional
        As `NuwaReward.__call__`.
    keep_log : bool, optional
        Keep each episode's events for `write_log`.

    Raises
    ------
    UserError
        As for `NuwaBatch`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        sampler: Sampler = wireless,
        reward: Reward | None = None,
        params: NuwaParams | Mapping[str, Any] | None = None,
        keep_log: bool = False,
    ) -> None:
        own = reward if isinstance(reward, NuwaReward) else None
        self._reward = None if own is reward else reward
        self._batch = NuwaBatch(1, sampler, own, params, 1, stagger=False, keep_log=keep_log)
        self.params = self._batch.params
        shape = (self.params.history + 1, len(nuwa.FEATURES))
        self.observation_space = Box(0.0, 1.0, shape, np.float32)
        self.action_space = Discrete(len(ACTIONS))

    @property
    def session(self) -> Slot:
        """The episode's simulation."""
        return Slot(self._batch, 0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; returns when the receiver has taken over from slow start."""
        super().reset(seed=seed)
        self._batch.reset(int(self.np_random.integers(1 << 31)))
        return self._state(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Multiply k and run for an interval."""
        batch = self._batch
        batch.step(np.array([[int(action)]]))
        reward, loss = float(batch.rewards[0, 0]), float(batch.loss_rate[0])
        if self._reward is not None:
            now = batch.values[0, 0]
            rate_bps = float(now[nuwa.RECEIVED]) * 8e6 / self.params.observation.interval_us
            reward = self._reward(rate_bps, float(now[nuwa.DELAY]), loss)
        info = {**self._info(), "loss_rate": loss}
        ends = bool(batch.terminated[0]), bool(batch.truncated[0])
        return self._state(), reward, *ends, info

    def _state(self) -> Observation:
        return scaled(self._batch.history(0), nuwa.FEATURES, nuwa.HALF)

    def _info(self) -> dict[str, Any]:
        return {
            "time_us": self.session.end_us,
            "observation": self._batch.values[0, 0].copy(),
            "k": self._batch.gain(0),
        }
