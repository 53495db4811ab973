"""MA-CC's environment: senders set windows, routers drop (ma-cc.txt section 3, Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from pydantic import Field

from data.errors import UserError, unknown_name
from data.netsim.agents import Session, in_flight, link_place, subflow_place, waiting
from data.netsim.network import Network
from data.netsim.state import OPEN
from data.strict import Strict
from features import macc
from features.intervals import scaled
from models.envs.logged import Logged
from models.envs.samplers import Sampler, dumbbell

Float = NDArray[np.float64]
Observation = NDArray[np.float32]


class MaccReward(Strict):
    """Rewards of eq. 3; its constants are ours: 1 is a sender's share, or the link's rate."""

    a: float = Field(4e-6, gt=0)
    """Per byte acknowledged in the step: 1 at 10 Mbps over 0.2 s."""
    b: float = Field(7e-7, gt=0)
    """Per byte in flight: 0.25 at 10 Mbps x 280 ms."""
    c: float = Field(9e-7, gt=0)
    """Per us of RTT: 0.25 at 280 ms."""
    d: float = Field(4e-4, gt=0)
    """Per packet/s that leaves the queue: 1 at 30 Mbps of 1500 bytes."""
    e: float = Field(5e-6, gt=0)
    """Per us of queueing delay: 0.5 at 100 ms."""
    f: float = Field(6.5e-4, gt=0)
    """Per packet in the queue: 0.25 at 385."""
    g: float = Field(1.0, gt=0)
    """For a loss rate of 1."""

    def sender(self, observation: Float) -> float:
        """r1, from `features.macc.SENDER` in their units."""
        o = observation
        return float(self.a * o[macc.ACKED] - self.b * o[macc.IN_FLIGHT] - self.c * o[macc.RTT])

    def router(self, observation: Float, loss_rate: float) -> float:
        """r2, from `features.macc.ROUTER` in their units and the queue's loss rate (0 to 1)."""
        o = observation
        good = self.d * o[macc.DEQUEUED]
        return float(good - self.e * o[macc.WAIT] - self.f * o[macc.QUEUE] - self.g * loss_rate)


class MaccParams(Strict):
    """Settings of the environment."""

    observation: macc.MaccObservation = macc.MaccObservation()
    senders: int = Field(3, ge=1)
    """Flows of the scenario, the first ones, that agents run (Table 1: 3)."""
    routers: tuple[str, ...] = ("core", "core_back")
    """Links, with ``queue: agent``, that agents run (Table 1: 2; which ones is ours)."""
    step_segments: int = Field(1, ge=1)
    """By how many segments an action moves the window (eq. 1: 1)."""
    max_cwnd: int = Field(4096, ge=2)
    """Bound of the window (segments; ours)."""
    start_cwnd: int = Field(200, ge=2)
    """Window at which slow start ends and the agent takes over (ours)."""
    start_intervals: int = Field(25, ge=1)
    """Steps after which the agents take over in any case (ours)."""
    steps: int = Field(300, ge=1)
    """Steps of an episode: 60 s (ours)."""


class parallel_env(Logged, ParallelEnv[str, Observation, np.int64]):  # type: ignore[misc]
    """``cczoo/MACC-v0``, a PettingZoo parallel environment.

    Agents ``sender_0`` ... set windows, ``router_0`` ... their queue's drop probability. Each has
    its own reward of eq. 3; the team's is their sum.

    Parameters
    ----------
    sampler : Sampler, optional
        Makes the scenario of an episode.
    reward : MaccReward, optional
        Anything with its two methods.
    params : MaccParams or mapping, optional
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
        self.params = MaccParams.parse(params or {}, "params")
        self._sampler = sampler or dumbbell()
        self._reward = reward or MaccReward()
        self._keep = keep_log
        self.render_mode = None
        self._senders = [f"sender_{i}" for i in range(self.params.senders)]
        self._routers = [f"router_{i}" for i in range(len(self.params.routers))]
        self.possible_agents = [*self._senders, *self._routers]
        self.agents: list[str] = []
        sizes = [len(macc.SENDER)] * len(self._senders) + [len(macc.ROUTER)] * len(self._routers)
        self.observation_spaces = {
            agent: Box(0.0, 1.0, (size,), np.float32)
            for agent, size in zip(self.possible_agents, sizes, strict=True)
        }
        self.action_spaces: dict[str, Discrete[np.int64]] = {
            agent: Discrete(3 if agent in self._senders else 2) for agent in self.possible_agents
        }
        self._rng = np.random.default_rng()
        self._session: Session | None = None
        self._observers: dict[str, macc.SenderObserver | macc.RouterObserver] = {}
        self._last: dict[str, Float] = {}
        self._steps = 0

    def observation_space(self, agent: str) -> Box:
        """Box in [0, 1], one number per feature."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete[np.int64]:
        """Senders: 0 up, 1 down, 2 hold (eq. 1); routers: 0 keep, 1 drop all (eq. 2)."""
        return self.action_spaces[agent]

    @property
    def session(self) -> Session:
        """The episode's simulation."""
        if self._session is None:
            raise UserError("MACC: no episode yet: call reset first")
        return self._session

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin an episode; returns when all senders are through slow start."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        p = self.params
        spec = self._sampler(self._rng)
        session = Session(
            spec,
            "agent",
            int(self._rng.integers(1 << 31)),
            p.observation.interval_us,
            self._read,
            self._keep,
        )
        if len(session.network.flow_names) < p.senders:
            raise UserError(f"scenario: fewer flows than the {p.senders} senders that agents run")
        for name in p.routers:
            if name not in spec.links:
                raise unknown_name("link", name, spec.links)
            if spec.links[name].queue != "agent":
                raise UserError(
                    f"scenario: links.{name}.queue: must be agent for an agent to run it"
                )
        self._session = session
        self._observers = {agent: macc.SenderObserver() for agent in self._senders}
        self._observers |= {agent: macc.RouterObserver(p.observation) for agent in self._routers}
        self.agents = list(self.possible_agents)
        self._steps = 0
        for k in range(p.start_intervals):
            self._observe()
            if self._take_over(last=k == p.start_intervals - 1):
                break
        return self._scaled(), self._infos()

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
        p, network = self.params, self.session.network
        for i, agent in enumerate(self._senders):
            s = network.subflows(i)
            change = (p.step_segments, -p.step_segments, 0)[int(actions[agent])]
            s["agent_cwnd"] = min(p.max_cwnd, max(1, int(s["agent_cwnd"][0]) + change))
        for name, agent in zip(p.routers, self._routers, strict=True):
            network.link(name)["agent_p"] = float(actions[agent])
        self._observe()
        self._steps += 1
        over = self._steps >= p.steps
        rewards = {agent: self._reward.sender(self._last[agent]) for agent in self._senders}
        for agent in self._routers:
            loss = self._observers[agent].loss_rate  # type: ignore[union-attr]
            rewards[agent] = self._reward.router(self._last[agent], loss)
        everyone = list(self.agents)
        if over:
            self.agents = []
        return (
            self._scaled(),
            rewards,
            dict.fromkeys(everyone, False),
            dict.fromkeys(everyone, over),
            self._infos(),
        )

    def render(self) -> None:
        """Nothing to see."""

    def close(self) -> None:
        """Nothing to release."""

    def _read(self, network: Network) -> Iterator[tuple[int, str, int]]:
        """Values that `features.macc` needs and no ACK carries."""
        for i in range(self.params.senders):
            place = subflow_place(network, i)
            payload = int(network.connection(i)["payload"])
            yield place, "in_flight_bytes", in_flight(network.state.sub[place]) * payload
        for name in self.params.routers:
            link, place = network.link(name), link_place(network, name)
            packets, size = waiting(network, name)
            yield place, "queue_packets", packets
            yield place, "queue_delay_us", size * 8_000_000 // max(1, int(link["rate"]))
            yield place, "dequeued_packets", int(link["served"]) - packets
            yield place, "offered_packets", int(link["arrived"])
            yield place, "dropped_packets", int(link["dropped"])

    def _places(self) -> Iterator[tuple[str, int]]:
        network = self.session.network
        for i, agent in enumerate(self._senders):
            yield agent, subflow_place(network, i)
        for name, agent in zip(self.params.routers, self._routers, strict=True):
            yield agent, link_place(network, name)

    def _observe(self) -> None:
        batches = self.session.advance()
        for agent, place in self._places():
            self._last[agent] = self._observers[agent].update(batches.get(place, {}))

    def _take_over(self, last: bool) -> bool:
        """End slow start of senders that are through it; whether all are."""
        network, through = self.session.network, True
        for i in range(self.params.senders):
            s = network.subflows(i)
            if int(s["agent_cwnd"][0]) > 0:
                continue
            cwnd = int(s["cwnd"][0])
            if cwnd >= self.params.start_cwnd or int(s["ca_state"][0]) != OPEN or last:
                s["agent_cwnd"] = min(self.params.max_cwnd, max(1, cwnd))
            else:
                through = False
        return through

    def _scaled(self) -> dict[str, Observation]:
        return {
            agent: scaled(values, macc.SENDER, macc.SENDER_HALF)
            if agent in self._senders
            else scaled(values, macc.ROUTER, macc.ROUTER_HALF)
            for agent, values in self._last.items()
        }

    def _infos(self) -> dict[str, dict[str, Any]]:
        network = self.session.network
        infos: dict[str, dict[str, Any]] = {
            agent: {"time_us": self.session.end_us, "observation": values.copy()}
            for agent, values in self._last.items()
        }
        for i, agent in enumerate(self._senders):
            infos[agent]["target_cwnd"] = int(network.subflows(i)["agent_cwnd"][0])
        return infos
