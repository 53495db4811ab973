"""MA-CC's environment: senders set windows, routers drop (ma-cc.txt section 3, Fig. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from pydantic import Field

from data.errors import UserError, unknown_name
from data.netsim.cc import number
from data.netsim.network import Network
from data.strict import Strict
from features import macc
from models.envs import macc_loop
from models.envs.batching import Batching
from models.envs.curriculum import Varied
from models.envs.logged import Logged, Slot
from models.envs.macc_reward import MaccReward
from models.envs.samplers import Sampler, dumbbell, named

Observation = NDArray[np.float32]


class MaccParams(Strict):
    """Settings of the environment."""

    observation: macc.MaccObservation = macc.MaccObservation()
    senders: int = Field(3, ge=1)
    """Flows of the scenario, the first ones, that agents run (Table 1: 3)."""
    routers: tuple[str, ...] = ("core", "core_back")
    """Links, with ``queue: agent``, that agents run (Table 1: 2; which ones is ours)."""
    step_segments: int = Field(10, ge=1)
    """By how many segments an action moves the window (eq. 1: 1; ten is ours)."""
    watch_other_queues: bool = False
    """Whether routers whose queue runs something else are observed and rewarded all the same, to
    compare with; what they do has no effect then."""
    max_cwnd: int = Field(4096, ge=2)
    """Bound of the window (segments; ours)."""
    start_cwnd: int = Field(200, ge=2)
    """Window at which slow start ends and the agent takes over (ours)."""
    start_intervals: int = Field(25, ge=1)
    """Steps from a sender's start after which its agent takes over in any case (ours)."""
    steps: int = Field(300, ge=1)
    """Steps of an episode: 60 s (ours)."""


class MaccBatch(Batching):
    """Many networks side by side (`models.envs.batch.BatchEnv`); parts are senders, then routers.

    Parameters
    ----------
    num_envs : int
    sampler : Sampler, optional
        Makes the scenario of an episode. The agents run its flows of one path without a ``cc``,
        the first ``params.senders`` of them, and those links of ``params.routers`` that it has
        with ``queue: agent``.
    reward : MaccReward, optional
    params : MaccParams or mapping, optional
    threads : int, optional
    **options
        As for `Batching`.

    Raises
    ------
    UserError
        On reset, when there is nothing in the scenario that agents run.
    """

    kept = ("memory", "flow_of", "link_of", "loss_rates")

    def __init__(
        self,
        num_envs: int = 1,
        sampler: Sampler | None = None,
        reward: MaccReward | None = None,
        params: MaccParams | Mapping[str, Any] | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        p = self.params = MaccParams.parse(params or {}, "params")
        kinds = [0] * p.senders + [1] * len(p.routers)
        self.action_counts, self.feature_counts = (3, 2), (len(macc.SENDER), len(macc.ROUTER))
        interval_us = p.observation.interval_us
        n, parts = num_envs, len(kinds)
        super().__init__(
            n, sampler or dumbbell(), "agent", interval_us, p.steps, kinds, threads, **options
        )
        self.memory = np.zeros((n, parts, max(macc.SENDER_MEMORY, macc.ROUTER_MEMORY)))
        self.flow_of = np.zeros((n, p.senders), np.int64)
        self.link_of = np.zeros((n, len(p.routers)), np.int64)
        self.loss_rates = np.zeros((n, parts))
        self._bind(macc_loop, p.model_dump(), reward=(reward or MaccReward()).numbers())

    def windows(self, i: int) -> NDArray[np.int64]:
        """Windows that the agents have set in an environment, of its senders that are there."""
        flows = self.flow_of[i, self.mask[i, : self.params.senders]]
        network = self.networks[i]
        return np.array([int(network.subflows(int(f))[0]["agent_cwnd"]) for f in flows])

    def _check(self, i: int, network: Network) -> None:
        links = network.scenario.links
        routed = any(name in links and links[name].queue == "agent" for name in self.params.routers)
        if not len(_flows(network)) and not routed:
            raise UserError(
                "scenario: nothing for agents to run: no flow of one path without a cc, and no "
                f"link of {', '.join(self.params.routers)} with queue: agent"
            )

    def _fresh(self, i: int, network: Network) -> None:
        p = self.params
        flows = _flows(network)[: p.senders]
        names, spec = network.link_names, network.scenario.links
        mine = [name for name in spec if p.watch_other_queues or spec[name].queue == "agent"]
        there = [name in mine for name in p.routers]
        self.mask[i] = [*(np.arange(p.senders) < len(flows)), *there]
        self.flow_of[i], self.link_of[i] = -1, -1
        self.flow_of[i, : len(flows)] = flows
        for k, name in enumerate(p.routers):
            if there[k]:
                self.link_of[i, k] = names.index(name)
        self.memory[i] = self.loss_rates[i] = 0.0

    def arrived(self, i: int) -> bool:
        """Never: its senders may have a router that goes on."""
        return False

    def places(self, i: int) -> NDArray[np.int64]:
        """Places (`data.netsim.readings`) of an environment's parts."""
        network, senders = self.networks[i], self.params.senders
        flows = self.flow_of[i, self.mask[i, :senders]]
        links = self.link_of[i, self.mask[i, senders:]] + len(network.state.sub)
        return np.concatenate([network.state.conn["sub0"][flows], links])


def _flows(network: Network) -> NDArray[np.int64]:
    """Numbers of the connections of one path that agents may run."""
    conn, sub = network.state.conn, network.state.sub
    mine = (conn["sub_n"] == 1) & (sub["cc"][conn["sub0"]] == number("agent"))
    return np.flatnonzero(mine)


class parallel_env(Logged, ParallelEnv[str, Observation, np.int64]):  # type: ignore[misc]
    """``cczoo/MACC-v0``, a PettingZoo parallel environment: a batch of one.

    Agents ``sender_0`` ... set windows, ``router_0`` ... their queue's drop probability. Each has
    its own reward of eq. 3; the team's is their sum.

    Parameters
    ----------
    sampler, params
        As for `MaccBatch`.
    reward : MaccReward, optional
        Anything with its two methods.
    keep_log : bool, optional
        Keep each episode's events for `write_log`.

    Raises
    ------
    UserError
        On reset, when the scenario lacks flows or links that agents are to run.
    """

    metadata = {"name": "cczoo/MACC-v0", "render_modes": [], "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self,
        sampler: Sampler | None = None,
        reward: MaccReward | None = None,
        params: MaccParams | Mapping[str, Any] | None = None,
        keep_log: bool = False,
    ) -> None:
        own = reward if isinstance(reward, MaccReward) else None
        self._reward = None if own is reward else reward
        self._batch = MaccBatch(1, sampler, own, params, 1, stagger=False, keep_log=keep_log)
        p = self.params = self._batch.params
        self.render_mode = None
        senders = [f"sender_{i}" for i in range(p.senders)]
        self.possible_agents = [*senders, *(f"router_{i}" for i in range(len(p.routers)))]
        self.agents: list[str] = []
        counts, sizes = self._batch.action_counts, self._batch.feature_counts
        kinds = dict(zip(self.possible_agents, self._batch.kinds.tolist(), strict=True))
        self.observation_spaces = {
            agent: Box(0.0, 1.0, (sizes[kind],), np.float32) for agent, kind in kinds.items()
        }
        self.action_spaces: dict[str, Discrete[np.int64]] = {
            agent: Discrete(counts[kind]) for agent, kind in kinds.items()
        }
        self._rng = np.random.default_rng()

    def observation_space(self, agent: str) -> Box:
        """Box in [0, 1], one number per feature."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete[np.int64]:
        """Senders: 0 up, 1 down, 2 hold (eq. 1); routers: 0 keep, 1 drop all (eq. 2)."""
        return self.action_spaces[agent]

    @property
    def session(self) -> Slot:
        """The episode's simulation."""
        return Slot(self._batch, 0)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin an episode; returns when all senders are through slow start."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._batch.reset(int(self._rng.integers(1 << 31)))
        self._check(self.session.network)
        self.agents = list(self.possible_agents)
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, np.int64]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Apply all agents' actions and run for a step."""
        batch, p = self._batch, self.params
        batch.step(np.array([[int(actions[agent]) for agent in self.possible_agents]]))
        rewards = dict(zip(self.possible_agents, batch.rewards[0].tolist(), strict=True))
        if self._reward is not None:
            for a, agent in enumerate(self.possible_agents):
                now = batch.values[0, a]
                if a < p.senders:
                    rewards[agent] = self._reward.sender(now)
                else:
                    rewards[agent] = self._reward.router(now, float(batch.loss_rates[0, a]))
        everyone, over = list(self.agents), bool(batch.truncated[0])
        if over:
            self.agents = []
        ends = dict.fromkeys(everyone, False), dict.fromkeys(everyone, over)
        return self._observations(), rewards, *ends, self._infos()

    def render(self) -> None:
        """Nothing to see."""

    def close(self) -> None:
        """Nothing to release."""

    def _check(self, network: Network) -> None:
        p, spec = self.params, network.scenario
        if not self._batch.mask[0, : p.senders].all():
            raise UserError(f"scenario: fewer flows than the {p.senders} senders that agents run")
        for name in p.routers:
            if name not in spec.links:
                raise unknown_name("link", name, spec.links)
            if spec.links[name].queue != "agent":
                raise UserError(
                    f"scenario: links.{name}.queue: must be agent for an agent to run it"
                )

    def _observations(self) -> dict[str, Observation]:
        rows = self._batch.observations[0]
        return {
            agent: rows[a, : self.observation_spaces[agent].shape[0]].copy()
            for a, agent in enumerate(self.possible_agents)
        }

    def _infos(self) -> dict[str, dict[str, Any]]:
        batch = self._batch
        infos: dict[str, dict[str, Any]] = {
            agent: {"time_us": self.session.end_us, "observation": batch.values[0, a].copy()}
            for a, agent in enumerate(self.possible_agents)
        }
        for agent, window in zip(self.possible_agents, batch.windows(0).tolist(), strict=False):
            infos[agent]["target_cwnd"] = window
        return infos


class MaccSettings(Varied):
    """What `batch` makes environments of."""

    sampler: str = "dumbbell"
    """A name of `models.envs.samplers.NAMED`, or a scenario."""
    reward: MaccReward = MaccReward()
    params: MaccParams = MaccParams()


def batch(
    num_envs: int, threads: int | None = None, settings: Mapping[str, Any] | None = None
) -> MaccBatch:
    """Make a batch by plain settings, as a trainer has them; see `MaccSettings`."""
    made = MaccSettings.parse(settings or {}, "environment")
    options: dict[str, Any] = {"reward": made.reward, "params": made.params, "threads": threads}
    return MaccBatch(num_envs, named(made.sampler), **options, **made.options())
