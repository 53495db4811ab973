"""TCCO's reward (tcco.txt eqs. 10-14 and the rules of section III.C.2), compiled for batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from data.netsim.jit import compiled, entry
from data.strict import Strict
from features import tcco

Float = NDArray[np.float64]


class TccoReward(Strict):
    """Reward of one step, eqs. 10-14 and the rules of section III.C.2; their constants are ours.

    By these T(D_min) allows an RTT of 3.4 ms and 1.6 base RTTs, whatever the base RTT is.
    """

    beta_us: float = Field(6600.0, gt=0)
    """Baseline of the RTT that is allowed (beta, eq. 11)."""
    growth: float = Field(1600.0 / 6600.0, ge=0)
    """Growth of it with the base RTT (g, eq. 11)."""
    floor_us: float = Field(2000.0, ge=0)
    """RTT at which the growth begins (D_f, eq. 11)."""
    resolution_us: float = Field(1000.0, gt=0)
    """Resolution of the RTT (sigma, eq. 11)."""
    steepness: float = Field(10.0, gt=0)
    """Steepness of the change from throughput to delay (kappa, eq. 12)."""
    delay_weight: float = Field(5.0, gt=0)
    """w_D, eq. 13."""
    throughput_weight: float = Field(1.0, gt=0)
    """w_rho, eq. 14, of a throughput that fills the path: the path's rate is the unit, so that the
    rules' 1 is worth the same on slow and on fast paths."""
    history: int = Field(5, ge=1)
    """Intervals over which RTT and throughput are averaged (section III.C.2)."""

    def allowed(self, base_rtt_us: float) -> float:
        """T(D_min), eq. 11: the mean RTT that is still good, in base RTTs."""
        excess = (base_rtt_us - self.floor_us) / self.resolution_us
        return self.beta_us * (1.0 + self.growth * excess) / base_rtt_us

    def numbers(self) -> Float:
        """The settings as the compiled reward reads them."""
        return np.array([float(value) for value in self.model_dump().values()])

    def balance(self, history: Float, path_bps: float) -> float:
        """R_i of eq. 10, from the last observations [history, 6] of a subflow."""
        rows = np.array(history, np.float64)
        return float(_balance(rows, len(rows) - 1, float(path_bps), self.numbers()))

    def __call__(
        self, history: Float, delta: int, at_bound: int, explore: bool, path_bps: float
    ) -> float:
        """R_i of a step.

        Parameters
        ----------
        history : float64 array [history, 6]
            `features.tcco.FEATURES` after the step, in their units, oldest first.
        delta : int
            The action's delta of this subflow.
        at_bound : int
            Whether the action took the window to a bound of its range: 1 the upper one, -1 the
            lower one, 0 neither.
        explore : bool
            Whether the expflag was up when the action was chosen.
        path_bps : float
            What the path carries, as the simulation knows it; 0 if it has no limit: the
            estimate of its bottleneck stands in for it then.
        """
        if at_bound > 0:
            return min(-1.0, self.balance(history, path_bps))
        if at_bound or (explore and delta <= 0):
            return -1.0
        return 1.0 if explore else self.balance(history, path_bps)


(_BETA, _GROWTH, _FLOOR, _RESOLUTION, _STEEPNESS, _DELAY, _THROUGHPUT, _HISTORY) = range(
    len(TccoReward.model_fields)
)


@compiled
def balance(rows: Any, newest: int, there: int, path_bps: float, reward: Any) -> float:
    """R_i of eq. 10.

    Parameters
    ----------
    rows : float64 array [h, 6]
        A ring of the subflow's last observations.
    newest : int
        Place of the newest one.
    there : int
        How many there are; at an episode's beginning they are fewer than are averaged later.
    path_bps : float
        What the path carries; 0: unknown.
    reward : float64 array
        `TccoReward.numbers`.
    """
    history = min(int(reward[_HISTORY]), there)
    rho = rtt = 0.0
    for age in range(history - 1, -1, -1):
        now = rows[(newest - age) % len(rows)]
        rho += now[tcco.THROUGHPUT]
        rtt += now[tcco.RTT]
    rho /= history
    rtt /= history
    base = rows[newest, tcco.BASE_RTT]
    full = path_bps if path_bps > 0.0 else max(1.0, rows[newest, tcco.BOTTLENECK])
    good = reward[_THROUGHPUT] * rho / full
    if base <= 0.0:
        return float(good)
    excess = (base - reward[_FLOOR]) / reward[_RESOLUTION]
    allowed = reward[_BETA] * (1.0 + reward[_GROWTH] * excess) / base
    over = rtt / base - allowed
    # Beyond 500 the exponential has nothing to add and would overflow.
    alpha = 1.0 / (1.0 + math.exp(min(500.0, max(-500.0, -reward[_STEEPNESS] * over))))
    return float(alpha * -reward[_DELAY] * over + (1.0 - alpha) * good)


@compiled
def step_reward(
    rows: Any, newest: int, there: int, rule: float, over: bool, path_bps: float, reward: Any
) -> float:
    """R_i of a step: what a rule of section III.C.2 says (1 or -1), else the balance.

    At the upper bound (``over``) it is the balance if that is less than the rule's -1. Otherwise
    more overload would earn more there than a little less, and nothing would lead back.
    """
    if rule != 0.0 and not over:
        return rule
    earned = balance(rows, newest, there, path_bps, reward)
    return min(rule, earned) if over else earned


@entry
def _balance(rows: Any, newest: int, path_bps: float, reward: Any) -> float:
    return balance(rows, newest, len(rows), path_bps, reward)
