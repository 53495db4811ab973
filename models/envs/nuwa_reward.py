"""Nuwa's utility (nuwa.txt eqs. 12-13), compiled for batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from data.netsim.jit import compiled, entry
from data.strict import Strict


class NuwaReward(Strict):
    """Utility of one step, eqs. 12-13; the units, in which alpha's curve bends, are ours."""

    gamma: float = Field(0.4, ge=0)
    theta: float = Field(0.4, ge=0)
    phi: float = Field(0.2, ge=0)
    alpha: float = Field(0.6, gt=0, lt=1)
    """alpha of the alpha-fairness function; below 1, as its logarithm has no value at 0."""
    throughput_unit_bps: float = Field(1e7, gt=0)
    delay_unit_us: float = Field(1e5, gt=0)

    def numbers(self) -> NDArray[np.float64]:
        """The settings as the compiled reward reads them."""
        return np.array([float(value) for value in self.model_dump().values()])

    def utility(self, x: float) -> float:
        """U_alpha, eq. 12."""
        return float(_utility(float(x), self.alpha))

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
        return float(
            _reward(float(throughput_bps), float(delay_us), float(loss_rate), self.numbers())
        )


_GAMMA, _THETA, _PHI, _ALPHA, _THROUGHPUT, _DELAY = range(len(NuwaReward.model_fields))


@compiled
def utility(x: float, alpha: float) -> float:
    """U_alpha, eq. 12."""
    return float(x ** (1.0 - alpha) / (1.0 - alpha))


@compiled
def step_reward(throughput_bps: float, delay_us: float, loss_rate: float, reward: Any) -> float:
    """U(b, tau_r, tau_l), eq. 13; the last argument is `NuwaReward.numbers`."""
    alpha = reward[_ALPHA]
    return float(
        reward[_GAMMA] * utility(throughput_bps / reward[_THROUGHPUT], alpha)
        - reward[_THETA] * utility(delay_us / reward[_DELAY], alpha)
        - reward[_PHI] * utility(loss_rate, alpha)
    )


@entry
def _utility(x: float, alpha: float) -> float:
    return utility(x, alpha)


@entry
def _reward(throughput_bps: float, delay_us: float, loss_rate: float, reward: Any) -> float:
    return step_reward(throughput_bps, delay_us, loss_rate, reward)
