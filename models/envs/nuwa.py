"""Nuwa's environment: an agent tunes k of the receiver's control (nuwa.txt section V)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from pydantic import Field

from data.errors import UserError
from data.netsim.agents import Session, subflow_place
from data.netsim.network import Network
from data.strict import Strict
from features import nuwa
from features.intervals import scaled
from models.envs.logged import Logged
from models.envs.samplers import Sampler, wireless

Observation = NDArray[np.float32]

ACTIONS = (0.25, 1.0, 1.05, 1.25, 2.85)
"""Factors on k, eq. 11."""
K_LOW, K_HIGH = 1.0, 9.0
"""Range of k (section V)."""


class NuwaReward(Strict):
    """Utility of one step, eqs. 12-13; the units, in which alpha's curve bends, are ours."""

    gamma: float = Field(0.4, ge=0)
    theta: float = Field(0.4, ge=0)
    phi: float = Field(0.2, ge=0)
    alpha: float = Field(0.6, gt=0, lt=1)
    """alpha of the alpha-fairness function; below 1, as its logarithm has no value at 0."""
    throughput_unit_bps: float = Field(1e7, gt=0)
    delay_unit_us: float = Field(1e5, gt=0)

    def utility(self, x: float) -> float:
        """U_alpha, eq. 12."""
        return float(x ** (1.0 - self.alpha) / (1.0 - self.alpha))

    def __call__(self, throughput_bps: float, delay_us: float, loss_rate: float) -> float:
        """U(b, tau_r, tau_l), eq. 13.

        Parameters
        ----------
        throughput_bps : float
            Data that arrived in the step.
        delay_us : float
            Mean one-way delay of the step's segments.
        loss_rate : float
            Segments found lost in the step, of those sent in it (0 to 1).
        """
        return (
            self.gamma * self.utility(throughput_bps / self.throughput_unit_bps)
            - self.theta * self.utility(delay_us / self.delay_unit_us)
            - self.phi * self.utility(loss_rate)
        )


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


class NuwaEnv(Logged, gymnasium.Env[Observation, np.int64]):
    """``cczoo/Nuwa-v0``.

    Parameters
    ----------
    sampler : Sampler, optional
        Makes the scenario of an episode; its first flow, single-path, is the agent's, and other
        flows without a ``cc`` of their own run Nuwa with a fixed k.
    reward : callable, optional
        As `NuwaReward.__call__`.
    params : NuwaParams or mapping, optional
    keep_log : bool, optional
        Keep each episode's events for `write_log`.

    Raises
    ------
    UserError
        On reset, when the scenario's first flow has more than one path.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        sampler: Sampler = wireless,
        reward: Reward | None = None,
        params: NuwaParams | Mapping[str, Any] | None = None,
        keep_log: bool = False,
    ) -> None:
        self.params = NuwaParams.parse(params or {}, "params")
        self._sampler = sampler
        self._reward: Reward = reward or NuwaReward()
        self._keep = keep_log
        shape = (self.params.history + 1, len(nuwa.FEATURES))
        self.observation_space = Box(0.0, 1.0, shape, np.float32)
        self.action_space = Discrete(len(ACTIONS))
        self._history = np.zeros(shape)
        self._session: Session | None = None
        self._reader = ReceiverReader()
        self._observer = nuwa.ReceiverObserver()
        self._sent = self._lost = self._steps = 0

    @property
    def session(self) -> Session:
        """The episode's simulation."""
        if self._session is None:
            raise UserError("Nuwa: no episode yet: call reset first")
        return self._session

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; returns when the receiver has taken over from slow start."""
        super().reset(seed=seed)
        spec = self._sampler(self.np_random)
        paths = len(spec.flows[0].paths)
        if paths != 1:
            raise UserError(f"scenario: {paths} paths where Nuwa's environment has one")
        interval = self.params.observation.interval_us
        self._reader = ReceiverReader()
        self._session = Session(
            spec, "nuwa", int(self.np_random.integers(1 << 31)), interval, self._reader, self._keep
        )
        self._observer = nuwa.ReceiverObserver()
        self._history = np.zeros_like(self._history)
        self._steps = 0
        for _ in range(self.params.start_intervals):
            self._observe()
            if int(self.session.network.subflows(0)[0]["nw_on"]):
                break
        self._losses()
        return self._state(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Multiply k and run for an interval."""
        flow = self.session.network.subflows(0)
        k = float(flow["agent_k"][0]) * ACTIONS[int(action)]
        flow["agent_k"] = min(K_HIGH, max(K_LOW, k))
        self._observe()
        self._steps += 1
        now = self._history[-1]
        rate_bps = float(now[nuwa.RECEIVED]) * 8e6 / self.params.observation.interval_us
        loss = self._losses()
        reward = self._reward(rate_bps, float(now[nuwa.DELAY]), loss)
        done = int(self.session.network.connection(0)["done_t"]) >= 0
        info = {**self._info(), "loss_rate": loss}
        return self._state(), reward, done, self._steps >= self.params.steps, info

    def _observe(self) -> None:
        batches = self.session.advance()
        batch = batches.get(subflow_place(self.session.network, 0), {})
        self._history[:-1] = self._history[1:]
        self._history[-1] = self._observer.update(batch)

    def _losses(self) -> float:
        """Loss rate since the last call."""
        flow = self.session.network.subflows(0)[0]
        sent, lost = int(flow["sent"]) - self._sent, int(flow["lost"]) - self._lost
        self._sent, self._lost = int(flow["sent"]), int(flow["lost"])
        return min(1.0, lost / sent) if sent > 0 else float(lost > 0)

    def _state(self) -> Observation:
        return scaled(self._history, nuwa.FEATURES, nuwa.HALF)

    def _info(self) -> dict[str, Any]:
        flow = self.session.network.subflows(0)[0]
        return {
            "time_us": self.session.end_us,
            "observation": self._history[-1].copy(),
            "k": float(flow["agent_k"]),
        }


class ReceiverReader:
    """Reads the receiver of the first connection: the Statistics Collector of Fig. 11."""

    def __init__(self) -> None:
        self._delay_sum = self._delay_n = 0

    def __call__(self, network: Network) -> Iterator[tuple[int, str, int]]:
        """Values that `features.nuwa` needs; no delay if nothing came."""
        place = subflow_place(network, 0)
        s, payload = network.state.sub[place], int(network.connection(0)["payload"])
        window = min(int(s["rx_window"]), int(network.connection(0)["window"]))
        yield place, "received_bytes", int(s["received"]) * payload
        yield place, "rcv_wnd_bytes", window * payload
        yield place, "rcv_queue_bytes", (int(s["received"]) - int(s["rcv_nxt"])) * payload
        total, count = int(s["owd_sum"]), int(s["owd_n"])
        if count > self._delay_n:
            mean = (total - self._delay_sum) // (count - self._delay_n)
            yield place, "owd_us", mean // 1000
        self._delay_sum, self._delay_n = total, count
