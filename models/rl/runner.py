"""Steps a batch of environments for RLlib and brings home arrays instead of episode objects."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import ray
import torch
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env import INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, WEIGHTS_SEQ_NO
from torch import Tensor

from models.envs.batch import BatchEnv
from models.rl import choose, states
from models.rl.fragment import Fragment
from models.rl.layout import Layout


def make(maker: str, num_envs: int, threads: int, settings: Mapping[str, Any]) -> BatchEnv:
    """A batch of environments.

    Parameters
    ----------
    maker : str
        ``module:function``; the function takes the other three.
    num_envs : int
    threads : int
    settings : mapping
        The environment's own.
    """
    module, _, function = maker.partition(":")
    found = getattr(importlib.import_module(module), function)(num_envs, threads, settings)
    return cast(BatchEnv, found)


class BatchRunner(EnvRunner):
    """An `EnvRunner` over a `BatchEnv`.

    RLlib makes it, in the trainer's process or as an actor on any node. ``config.env_config`` holds
    ``maker``, ``num_envs``, ``threads``, ``settings`` and ``odds`` (see `models.rl.choose.odds`).
    """

    env: Any

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        if config.num_env_runners:
            torch.set_num_threads(1)
        self.given: dict[str, Any] = dict(config.env_config)
        # In the trainer's process it acts with the very network that learns.
        self.module: Any = config.rl_module_spec.build() if config.num_env_runners else None
        self.env = None
        self._fresh = True
        self._seq_no = 0

    def make_env(self, stagger: bool = True) -> None:
        """Begin the episodes, seeded with the run's seed, the runner and when it begins.

        Parameters
        ----------
        stagger : bool
            Whether first episodes may be cut to unlike lengths; see `BatchEnv`.
        """
        given = self.given
        self.env = make(given["maker"], given["num_envs"], given["threads"], given["settings"])
        self.env.stagger = self.env.stagger and stagger
        self.layout = Layout.of(self.env)
        key = [int(self.config.seed or 0), self.worker_index, self.num_env_steps_sampled_lifetime]
        self.rng = np.random.default_rng(key)
        self.env.reset(int(self.rng.integers(1 << 31)))
        self._odds = choose.odds(self.layout, given["odds"])
        lanes = self.env.num_envs
        first = self.module.get_initial_state()
        self._state, self._blank = states.of(first, lanes), states.of(first, 1)
        self._return, self._length = np.zeros(lanes), np.zeros(lanes, np.int64)
        self._fresh = True

    def sample(
        self,
        *,
        rows: int = 1,
        epsilon: float | None = None,
        greedy: bool = False,
        chunk: int = 0,
        **_: Any,
    ) -> Fragment:
        """Step all environments.

        Parameters
        ----------
        rows : int
            T, how often.
        epsilon : float, optional
            Share of random actions; without it actions are drawn with the odds of the scores.
        greedy : bool
            Take the best actions instead.
        chunk : int
            Keep the recurrent state before every so many rows; 0 for never.

        Returns
        -------
        Fragment
        """
        if self.env is None:
            self.make_env()
        env: BatchEnv = self.env
        shape = (env.num_envs, self.layout.parts, self.layout.features)
        found = Fragment.empty(self.worker_index or 0, self._fresh, rows, shape)
        self._fresh = False
        critic = epsilon is None and not greedy
        kept: dict[str, list[Tensor]] = {name: [] for name in self._state} if chunk else {}
        values: list[Tensor] = []
        if critic:
            found.logp = np.empty((rows, env.num_envs), np.float32)
        for t in range(rows):
            if chunk and t % chunk == 0:
                for name, value in self._state.items():
                    kept[name].append(value)
            found.observations[t], found.mask[t] = env.observations, env.mask
            out = self._forward(found.observations[t], found.mask[t], self._state)
            scores = out["scores"].numpy()
            if critic and found.logp is not None:
                actions, logp = choose.sampled(scores, self.rng)
                found.logp[t] = np.where(found.mask[t], logp, 0.0).sum(axis=1)
                values.append(out["values"])
            elif greedy or epsilon is None:
                actions = choose.best(scores)
            else:
                actions = choose.mostly_best(scores, epsilon, self._odds, self.rng)
            found.actions[t] = actions
            env.step(actions)
            self._state = out.get(Columns.STATE_OUT, {})
            self._note(found, t)
        if critic:
            out = self._forward(env.observations, env.mask, self._state)
            values.append(out["values"])
            found.values = torch.stack(values).numpy()
        found.states = {name: torch.stack(value).numpy() for name, value in kept.items()}
        self.num_env_steps_sampled_lifetime += found.steps
        return found

    def _forward(self, observations: Any, mask: Any, state: states.State) -> dict[str, Any]:
        batch: dict[str, Any] = {
            Columns.OBS: torch.from_numpy(observations),
            "mask": torch.from_numpy(mask),
        }
        if state:
            batch[Columns.STATE_IN] = state
        found: dict[str, Any] = self.module.forward_exploration(batch)
        return found

    def _note(self, found: Fragment, t: int) -> None:
        """Take what came of a step; where an episode began, forget the one before."""
        env: BatchEnv = self.env
        rewards = env.rewards.sum(axis=1)
        found.rewards[t], found.own[t] = rewards, env.rewards
        found.terminated[t], found.over[t] = env.terminated, env.started
        self._return += rewards
        self._length += ~env.started
        ended = env.terminated | env.truncated
        if ended.any():
            found.returns += self._return[ended].tolist()
            found.lengths += self._length[ended].tolist()
            found.lanes += ended.nonzero()[0].tolist()
            self._return[ended], self._length[ended] = 0.0, 0
        if env.started.any():
            self._state = states.begun_anew(self._state, self._blank, env.started)

    def get_spaces(self) -> dict[str, Any]:
        """Spaces of one environment and of the network, which are the same."""
        spaces = self.config.observation_space, self.config.action_space
        return {INPUT_ENV_SPACES: spaces, DEFAULT_MODULE_ID: spaces}

    def get_metrics(self) -> dict[str, Any]:
        """What RLlib gathers: nothing, a fragment brings its own."""
        return {}

    def assert_healthy(self) -> None:
        """Fail if there is nothing to act with."""
        assert self.module is not None

    def get_state(self, components: Any = None, **_: Any) -> dict[str, Any]:
        """The network's weights, as RLlib passes them on to other runners."""
        return {
            COMPONENT_RL_MODULE: {DEFAULT_MODULE_ID: self.module.get_state()},
            WEIGHTS_SEQ_NO: self._seq_no,
            NUM_ENV_STEPS_SAMPLED_LIFETIME: self.num_env_steps_sampled_lifetime,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over weights; a runner that begins later has other episodes than the first."""
        if COMPONENT_RL_MODULE in state:
            weights = state[COMPONENT_RL_MODULE]
            if isinstance(weights, ray.ObjectRef):
                weights = ray.get(weights)
            self.module.set_state(weights.get(DEFAULT_MODULE_ID, weights))
        self._seq_no = state.get(WEIGHTS_SEQ_NO, self._seq_no)
        if self.env is None:
            begun = state.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
            self.num_env_steps_sampled_lifetime = int(begun)

    def get_place(self) -> dict[str, Any]:
        """All that decides what it samples next, without the weights."""
        if self.env is None:
            self.make_env()
        return {
            "env": self.env.get_state(),
            "state": {name: value.numpy().copy() for name, value in self._state.items()},
            "return": self._return.copy(),
            "length": self._length.copy(),
            "rng": self.rng.bit_generator.state,
            "fresh": self._fresh,
            "steps": self.num_env_steps_sampled_lifetime,
        }

    def set_place(self, place: dict[str, Any]) -> None:
        """Go on where `get_place` was called."""
        self.make_env()
        self.env.set_state(place["env"])
        self._state = {name: torch.from_numpy(value) for name, value in place["state"].items()}
        self._return[:], self._length[:] = place["return"], place["length"]
        self.rng.bit_generator.state = place["rng"]
        self._fresh, self.num_env_steps_sampled_lifetime = place["fresh"], place["steps"]

    def stop(self) -> None:
        """End the environments' threads."""
        if self.env is not None:
            self.env.close()
            self.env = None
