"""Settings of the comparisons, where they aren't those of the agents."""

from __future__ import annotations

from pydantic import Field

from models.rl.params import Macc, Ppo, Replay, Width


class StackedDqn(Replay):
    """A Q network without memory that sees the last observations side by side.

    The layers of each subflow and the heads are the Transformer's (`TransformerDqn`).
    """

    logs: bool = True
    """As TCCO's and Nuwa's."""
    rate: float = Field(5e-4, ge=0)
    """As TCCO's."""
    gamma: float = Field(0.969, ge=0, lt=1)
    """tcco.txt Table I."""
    subflow_width: Width = 64
    """tcco.txt Table I: subflow FC1 and FC2."""
    width: Width = 128
    """Of the two layers that stand where the Transformer was (ours; Table I's embedding)."""
    context: int = Field(20, ge=1)
    """Observations side by side; 1: the present one alone."""


class StackedPpo(Ppo):
    """An actor and a critic without memory that see the last observations side by side."""

    context: int = Field(8, ge=1)
    """Observations side by side: n + 1 of nuwa.txt eq. 10 with n = 7; 1: the present one alone."""


class Independent(Macc):
    """Every part learns by itself, as if the others belonged to the network."""

    own_rewards: bool = True
    """Whether each learns from its own reward (ma-cc.txt eq. 3); otherwise all from the team's."""


class Qmix(Macc):
    """A team's Q is a mix of its parts' that grows with each of them."""

    mixing: Width = 32
    """Units of the mixing network (QMIX, arXiv 1803.11485, appendix)."""
