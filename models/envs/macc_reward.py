"""MA-CC's rewards (ma-cc.txt eq. 3), compiled for batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from data.netsim.jit import compiled, entry
from data.strict import Strict
from features import macc

Float = NDArray[np.float64]


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

    def numbers(self) -> Float:
        """The settings as the compiled rewards read them."""
        return np.array([float(value) for value in self.model_dump().values()])

    def sender(self, observation: Float) -> float:
        """r1, from `features.macc.SENDER` in their units."""
        return float(_sender(np.array(observation, np.float64), self.numbers()))

    def router(self, observation: Float, loss_rate: float) -> float:
        """r2, from `features.macc.ROUTER` in their units and the queue's loss rate (0 to 1)."""
        seen = np.array(observation, np.float64)
        return float(_router(seen, float(loss_rate), self.numbers()))


_A, _B, _C, _D, _E, _F, _G = range(len(MaccReward.model_fields))


@compiled
def sender_reward(o: Any, reward: Any) -> float:
    """r1 of eq. 3; the last argument is `MaccReward.numbers`."""
    return float(
        reward[_A] * o[macc.ACKED] - reward[_B] * o[macc.IN_FLIGHT] - reward[_C] * o[macc.RTT]
    )


@compiled
def router_reward(o: Any, loss_rate: float, reward: Any) -> float:
    """r2 of eq. 3; the last argument is `MaccReward.numbers`."""
    good = reward[_D] * o[macc.DEQUEUED]
    return float(
        good - reward[_E] * o[macc.WAIT] - reward[_F] * o[macc.QUEUE] - reward[_G] * loss_rate
    )


@entry
def _sender(o: Any, reward: Any) -> float:
    return sender_reward(o, reward)


@entry
def _router(o: Any, loss_rate: float, reward: Any) -> float:
    return router_reward(o, loss_rate, reward)
