"""TCCO's environment: one agent sets the windows of all subflows (tcco.txt section III.C)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray
from pydantic import Field

from data.errors import UserError
from data.netsim.agents import Session, subflow_place
from data.netsim.network import Network
from data.netsim.state import OPEN
from data.strict import Strict
from features import tcco
from features.intervals import scaled
from models.envs.logged import Logged
from models.envs.samplers import Sampler, alternating

Float = NDArray[np.float64]
Observation = NDArray[np.float32]


class TccoReward(Strict):
    """Reward of one step, eqs. 10-14 and the rules of section III.C.2; their constants are ours."""

    beta_us: float = Field(5000.0, gt=0)
    """Baseline of the RTT that is allowed (beta, eq. 11)."""
    growth: float = Field(0.22, ge=0)
    """Growth of it with the base RTT (g, eq. 11)."""
    floor_us: float = Field(2000.0, ge=0)
    """RTT at which the growth begins (D_f, eq. 11)."""
    resolution_us: float = Field(1000.0, gt=0)
    """Resolution of the RTT (sigma, eq. 11)."""
    steepness: float = Field(10.0, gt=0)
    """Steepness of the change from throughput to delay (kappa, eq. 12)."""
    delay_weight: float = Field(1.0, gt=0)
    """w_D, eq. 13."""
    throughput_weight: float = Field(2e-9, gt=0)
    """w_rho, eq. 14, per bit/s: 1 at 500 Mbps."""
    history: int = Field(5, ge=1)
    """Intervals over which RTT and throughput are averaged (section III.C.2)."""

    def allowed(self, base_rtt_us: float) -> float:
        """T(D_min), eq. 11: the mean RTT that is still good, in base RTTs."""
        excess = (base_rtt_us - self.floor_us) / self.resolution_us
        return self.beta_us * (1.0 + self.growth * excess) / base_rtt_us

    def balance(self, history: Float) -> float:
        """R_i of eq. 10, from the last observations [history, 6] of a subflow."""
        base = float(history[-1, tcco.BASE_RTT])
        rho = float(history[:, tcco.THROUGHPUT].mean())
        if base <= 0.0:
            return self.throughput_weight * rho
        excess = float(history[:, tcco.RTT].mean()) / base - self.allowed(base)
        # Beyond 500 the exponential has nothing to add and would overflow.
        alpha = 1.0 / (1.0 + math.exp(min(500.0, max(-500.0, -self.steepness * excess))))
        return alpha * -self.delay_weight * excess + (1 - alpha) * self.throughput_weight * rho

    def __call__(self, history: Float, delta: int, at_bound: bool, explore: bool) -> float:
        """R_i of a step.

        Parameters
        ----------
        history : float64 array [history, 6]
            `features.tcco.FEATURES` after the step, in their units, oldest first.
        delta : int
            The action's delta of this subflow.
        at_bound : bool
            Whether the action took the window to a bound of its range.
        explore : bool
            Whether the expflag was up when the action was chosen.
        """
        if at_bound or (explore and delta <= 0):
            return -1.0
        return 1.0 if explore else self.balance(history)


Reward = Callable[[Float, int, bool, bool], float]


class TccoParams(Strict):
    """Settings of the environment."""

    subflows: int = Field(2, ge=1)
    observation: tcco.TccoObservation = tcco.TccoObservation()
    context: int = Field(20, ge=1)
    """Observations in a context (L; Table I)."""
    reach: int = Field(2, ge=1)
    """n: delta goes from -n to n (ours)."""
    step_segments: int = Field(8, ge=1)
    """k: segments per unit of delta (ours)."""
    min_cwnd: int = Field(4, ge=1)
    max_cwnd: int = Field(2048, ge=2)
    """Bounds of the window (segments; ours)."""
    start_cwnd: int = Field(32, ge=2)
    """Window at which the Start phase ends (section III.C.1: "a low threshold"; ours)."""
    start_intervals: int = Field(100, ge=1)
    """Intervals after which the agent takes over in any case (ours)."""
    probe_intervals: int = Field(500, ge=0)
    """Intervals from one Probe phase, which drains the queue, to the next; 0: none (ours)."""
    steps: int = Field(1000, ge=1)
    """Steps of an episode: 20 s, as the simulated tests (ours)."""


class TccoEnv(Logged, gymnasium.Env[Observation, NDArray[np.integer[Any]]]):
    """``cczoo/TCCO-v0``.

    Parameters
    ----------
    sampler : Sampler, optional
        Makes the scenario of an episode; its first flow is the agent's.
    reward : callable, optional
        As `TccoReward.__call__`, per subflow; a step's reward is their sum.
    params : TccoParams or mapping, optional
    keep_log : bool, optional
        Keep each episode's events for `write_log`.

    Raises
    ------
    UserError
        On reset, when the scenario's first flow has another number of subflows.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        sampler: Sampler = alternating,
        reward: Reward | None = None,
        params: TccoParams | Mapping[str, Any] | None = None,
        keep_log: bool = False,
    ) -> None:
        self.params = TccoParams.parse(params or {}, "params")
        self._sampler = sampler
        self._reward: Reward = reward or TccoReward()
        self._keep = keep_log
        p, d = self.params, len(tcco.FEATURES)
        self.observation_space = Box(0.0, 1.0, (p.context, p.subflows, d), np.float32)
        self.action_space = MultiDiscrete(np.full(p.subflows, 2 * p.reach + 1, np.int64))
        self._session: Session | None = None
        self._observers: list[tcco.SubflowObserver] = []

    @property
    def session(self) -> Session:
        """The episode's simulation."""
        if self._session is None:
            raise UserError("TCCO: no episode yet: call reset first")
        return self._session

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; returns when slow start is over."""
        super().reset(seed=seed)
        p = self.params
        spec = self._sampler(self.np_random)
        paths = len(spec.flows[0].paths)
        if paths != p.subflows:
            raise UserError(f"scenario: {paths} subflows where {p.subflows} were expected")
        self._session = Session(
            spec,
            "agent",
            int(self.np_random.integers(1 << 31)),
            p.observation.interval_us,
            read_delivered,
            self._keep,
        )
        self._observers = [tcco.SubflowObserver(p.observation) for _ in range(paths)]
        length = max(p.context, getattr(self._reward, "history", 1))
        self._history = np.zeros((length, paths, len(tcco.FEATURES)))
        self._targets = np.full(paths, -1)
        self._steps = 0
        self._draining = np.zeros(paths, int)
        for k in range(p.start_intervals):
            self._observe()
            if self._take_over(last=k == p.start_intervals - 1):
                break
        return self._context(), self._info()

    def step(
        self, action: NDArray[np.integer[Any]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move the windows' targets and run for an interval."""
        p, network = self.params, self.session.network
        delta = np.asarray(action, np.int64) - p.reach
        explore = self._history[-1, :, tcco.EXPFLAG] > 0
        wanted = self._targets + p.step_segments * delta
        self._targets = np.clip(wanted, p.min_cwnd, p.max_cwnd)
        at_bound = (wanted <= p.min_cwnd) | (wanted >= p.max_cwnd)
        self._probe()
        windows = self._targets
        if self._draining.any():
            windows = np.where(self._draining > 0, self._drained(), self._targets)
            self._draining = np.maximum(self._draining - 1, 0)
        network.subflows(0)["agent_cwnd"] = windows
        self._observe()
        self._steps += 1
        recent = self._history[-getattr(self._reward, "history", 1) :]
        rewards = [
            self._reward(recent[:, i], int(delta[i]), bool(at_bound[i]), bool(explore[i]))
            for i in range(p.subflows)
        ]
        done = int(network.connection(0)["done_t"]) >= 0
        info = {**self._info(), "rewards": np.array(rewards)}
        return self._context(), float(sum(rewards)), done, self._steps >= p.steps, info

    def _observe(self) -> None:
        """Run for an interval and take the observations at its end."""
        batches = self.session.advance()
        self._history = np.roll(self._history, -1, axis=0)
        for i, observer in enumerate(self._observers):
            batch = batches.get(subflow_place(self.session.network, 0, i), {})
            self._history[-1, i] = observer.update(batch)

    def _take_over(self, last: bool) -> bool:
        """End the Start phase of subflows that are through it; whether all are."""
        p = self.params
        subflows = self.session.network.subflows(0)
        for i, s in enumerate(subflows):
            through = int(s["cwnd"]) >= p.start_cwnd or int(s["ca_state"]) != OPEN
            if self._targets[i] < 0 and (through or last):
                self._targets[i] = min(p.max_cwnd, max(p.min_cwnd, int(s["cwnd"])))
        subflows["agent_cwnd"] = self._targets
        return bool((self._targets > 0).all())

    def _probe(self) -> None:
        """Begin a Probe phase when one is due: as long as two RTTs and an interval."""
        p = self.params
        if p.probe_intervals and self._steps and self._steps % p.probe_intervals == 0:
            rtt = self._history[-1, :, tcco.RTT]
            self._draining = np.ceil(2 * rtt / p.observation.interval_us).astype(int) + 1

    def _drained(self) -> NDArray[np.int64]:
        """Windows of half of what the paths hold: their queues empty."""
        now, payload = self._history[-1], int(self.session.network.connection(0)["payload"])
        held = now[:, tcco.BOTTLENECK] * now[:, tcco.BASE_RTT] / 8e6 / payload
        half = np.maximum(self.params.min_cwnd, held // 2).astype(np.int64)
        result: NDArray[np.int64] = np.minimum(half, self._targets)
        return result

    def _context(self) -> Observation:
        recent = self._history[-self.params.context :]
        return scaled(recent, tcco.FEATURES, tcco.HALF)

    def _info(self) -> dict[str, Any]:
        return {
            "time_us": self.session.end_us,
            "observation": self._history[-1].copy(),
            "target_cwnd": self._targets.copy(),
            "probing": self._draining > 0,
        }


def read_delivered(network: Network) -> Iterator[tuple[int, str, int]]:
    """Values that `features.tcco` needs and no ACK carries, of the first connection's subflows."""
    payload = int(network.connection(0)["payload"])
    for i, s in enumerate(network.subflows(0)):
        yield subflow_place(network, 0, i), "delivered_bytes", int(s["delivered"]) * payload
