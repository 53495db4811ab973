"""TCCO's environment: one agent sets the windows of all subflows (tcco.txt section III.C)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray
from pydantic import Field, model_validator

from data.errors import UserError
from data.netsim.network import Network
from data.strict import Strict
from features import tcco
from features.intervals import scaled
from models.envs import tcco_loop
from models.envs.batching import Batching
from models.envs.curriculum import Varied
from models.envs.logged import Logged, Slot
from models.envs.samplers import SUBFLOWS, Sampler, alternating, named
from models.envs.tcco_reward import TccoReward

Float = NDArray[np.float64]
Observation = NDArray[np.float32]
Reward = Callable[[Float, int, int, bool, float], float]


class TccoParams(Strict):
    """Settings of the environment."""

    subflows: int = Field(2, ge=1)
    observation: tcco.TccoObservation = tcco.TccoObservation()
    context: int = Field(20, ge=1)
    """Observations in a context (L; Table I)."""
    reach: int = Field(2, ge=1, le=60)
    """n: delta goes from -n to n (ours)."""
    step_share: float = Field(1 / 16, ge=0, le=1)
    """k: unit of delta, as a share of what the path holds by the observation (ours)."""
    step_segments: int = Field(1, ge=1)
    """Least unit of delta (segments; ours)."""
    min_cwnd: int = Field(4, ge=1)
    max_cwnd: int = Field(65_535, ge=2)
    """Bounds of the window (segments; ours)."""
    most_held: float = Field(3.0, gt=0, le=1e6)
    """Upper bound of the window, in what the path holds; not below ``start_cwnd`` (ours)."""
    start_cwnd: int = Field(32, ge=2)
    """Window at which the Start phase ends (section III.C.1: "a low threshold"; ours)."""
    start_intervals: int = Field(100, ge=1)
    """Intervals after which the agent takes over in any case (ours)."""
    probe_intervals: int = Field(500, ge=0)
    """Intervals from one Probe phase, which drains the queue, to the next; 0: none (ours)."""
    steps: int = Field(1000, ge=1)
    """Steps of an episode: 20 s, as the simulated tests (ours)."""


class TccoBatch(Batching):
    """Many connections side by side (`models.envs.batch.BatchEnv`), whose parts are subflows.

    Parameters
    ----------
    num_envs : int
    sampler : Sampler, optional
        Makes the scenario of an episode; its first flow, of up to ``params.subflows`` subflows, is
        the agent's.
    reward : TccoReward, optional
    params : TccoParams or mapping, optional
    threads : int, optional
    **options
        As for `Batching`.

    Raises
    ------
    UserError
        On reset, when the scenario's first flow has too many subflows.
    """

    kept = ("targets", "draining", "memory", "ring", "cursor", "unit", "most", "path_bps")

    def __init__(
        self,
        num_envs: int = 1,
        sampler: Sampler = alternating,
        reward: TccoReward | None = None,
        params: TccoParams | Mapping[str, Any] | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        p = self.params = TccoParams.parse(params or {}, "params")
        paid = reward or TccoReward()
        n, parts, d = num_envs, p.subflows, len(tcco.FEATURES)
        self.action_counts, self.feature_counts = (2 * p.reach + 1,), (d,)
        self.context = p.context
        interval_us = p.observation.interval_us
        super().__init__(n, sampler, "agent", interval_us, p.steps, [0] * parts, threads, **options)
        self.targets = np.zeros((n, parts), np.int64)
        self.draining = np.zeros((n, parts), np.int64)
        self.unit = np.zeros((n, parts), np.int64)
        self.most = np.zeros((n, parts), np.int64)
        self.at_bound = np.zeros((n, parts), np.int64)
        self.path_bps = np.zeros((n, parts))
        self._empty = tcco.memory(p.observation)
        self.memory = np.tile(self._empty, (n, parts, 1))
        self.ring = np.zeros((n, max(p.context, paid.history), parts, d))
        self.cursor = np.zeros(n, np.int64)
        observing = tcco.settings(p.observation)
        shares = np.array([float(getattr(p, name)) for name in tcco_loop.SHARES])
        made = {"observing": observing, "shares": shares, "reward": paid.numbers()}
        self._bind(tcco_loop, p.model_dump(), **made)

    def history(self, i: int) -> Float:
        """An environment's last observations in their units, oldest first: [h, subflows, 6]."""
        return np.roll(self.ring[i], -1 - int(self.cursor[i]), axis=0)

    def _check(self, i: int, network: Network) -> None:
        paths = len(network.subflows(int(self.own[i])))
        if paths > self.params.subflows:
            raise UserError(
                f"scenario: {paths} subflows where {self.params.subflows} were expected at most"
            )

    def _fresh(self, i: int, network: Network) -> None:
        p, own = self.params, int(self.own[i])
        paths = len(network.subflows(own))
        self.mask[i] = np.arange(p.subflows) < paths
        self.targets[i], self.draining[i], self.cursor[i] = -1, 0, 0
        self.memory[i], self.ring[i] = self._empty, 0.0
        self.unit[i], self.most[i], self.path_bps[i] = p.step_segments, p.max_cwnd, 0.0
        self.path_bps[i, :paths] = network.capacities(own)

    def places(self, i: int) -> NDArray[np.int64]:
        """Places (`data.netsim.readings`) of an environment's parts."""
        first = int(self.networks[i].connection(int(self.own[i]))["sub0"])
        return first + np.flatnonzero(self.mask[i])


class TccoEnv(Logged, gymnasium.Env[Observation, NDArray[np.integer[Any]]]):
    """``cczoo/TCCO-v0``: a batch of one.

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
        own = reward if isinstance(reward, TccoReward) else None
        self._reward = None if own is reward else reward
        self._batch = TccoBatch(1, sampler, own, params, 1, stagger=False, keep_log=keep_log)
        p = self.params = self._batch.params
        self.observation_space = Box(
            0.0, 1.0, (p.context, p.subflows, len(tcco.FEATURES)), np.float32
        )
        self.action_space = MultiDiscrete(np.full(p.subflows, 2 * p.reach + 1, np.int64))

    @property
    def session(self) -> Slot:
        """The episode's simulation."""
        return Slot(self._batch, 0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; returns when slow start is over."""
        super().reset(seed=seed)
        self._batch.reset(int(self.np_random.integers(1 << 31)))
        paths, expected = int(self._batch.mask.sum()), self.params.subflows
        if paths != expected:
            raise UserError(f"scenario: {paths} subflows where {expected} were expected")
        return self._context(), self._info()

    def step(
        self, action: NDArray[np.integer[Any]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move the windows' targets and run for an interval."""
        batch, p = self._batch, self.params
        explore = batch.values[0, :, tcco.EXPFLAG] > 0
        delta = np.asarray(action, np.int64) - p.reach
        batch.step(np.asarray(action, np.int64)[None])
        rewards = batch.rewards[0].copy()
        if self._reward is not None:
            recent = batch.history(0)[-getattr(self._reward, "history", len(batch.ring[0])) :]
            for k in range(p.subflows):
                step = int(delta[k]), int(batch.at_bound[0, k]), bool(explore[k])
                rewards[k] = self._reward(recent[:, k], *step, float(batch.path_bps[0, k]))
        info = {**self._info(), "rewards": rewards}
        ends = bool(batch.terminated[0]), bool(batch.truncated[0])
        return self._context(), float(sum(rewards)), *ends, info

    def _context(self) -> Observation:
        recent = self._batch.history(0)[-self.params.context :]
        return scaled(recent, tcco.FEATURES, tcco.HALF)

    def _info(self) -> dict[str, Any]:
        batch = self._batch
        return {
            "time_us": self.session.end_us,
            "observation": batch.values[0].copy(),
            "target_cwnd": batch.targets[0].copy(),
            "probing": batch.draining[0] > 0,
        }


class TccoSettings(Varied):
    """What `batch` makes environments of."""

    sampler: str = "alternating"
    """A name of `models.envs.samplers.NAMED`, or a scenario."""
    reward: TccoReward = TccoReward()
    params: TccoParams = TccoParams()
    """Without ``subflows`` as many as `models.envs.samplers.SUBFLOWS` has for the sampler, or 2."""

    @model_validator(mode="before")
    @classmethod
    def _enough_subflows(cls, tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return tree
        params, most = tree.get("params") or {}, SUBFLOWS.get(str(tree.get("sampler")))
        if most is None or not isinstance(params, Mapping) or "subflows" in params:
            return tree
        return {**tree, "params": {**params, "subflows": most}}


def batch(
    num_envs: int, threads: int | None = None, settings: Mapping[str, Any] | None = None
) -> TccoBatch:
    """Make a batch by plain settings, as a trainer has them; see `TccoSettings`."""
    made = TccoSettings.parse(settings or {}, "environment")
    options: dict[str, Any] = {"reward": made.reward, "params": made.params, "threads": threads}
    return TccoBatch(num_envs, named(made.sampler), **options, **made.options())
