"""QMIX: a team's Q grows with each part's, by weights that depend on the state (arXiv 1803.11485).

The state is what all parts observe together, standardised, since the simulator's own is no vector.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from models.rl.algorithms.replay import VdnAlgorithm
from models.rl.comparisons.params import Qmix
from models.rl.layout import Layout
from models.rl.learners.q import Asked, QLearner
from models.rl.networks.dueling import TeamModule, Teams


class Mixer(nn.Module):
    """Two layers whose weights come from the state and are never negative."""

    def __init__(self, parts: int, state: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.weights = nn.Linear(state, units * parts)
        self.last_weights = nn.Linear(state, units)
        self.bias = nn.Linear(state, units)
        self.last_bias = nn.Sequential(nn.Linear(state, units), nn.ReLU(), nn.Linear(units, 1))

    def forward(self, parts: Tensor, state: Tensor) -> Tensor:
        """The team's Q [...] of its parts' [..., A] in states [..., S]."""
        weights = self.weights(state).abs().unflatten(-1, (-1, self.units))
        hidden = functional.elu((parts[..., None] * weights).sum(-2) + self.bias(state))
        found: Tensor = (hidden * self.last_weights(state).abs()).sum(-1)
        found = found + self.last_bias(state)[..., 0]
        return found


class MixedTeams(Teams):
    """The parts' networks, which act, and the mixer, which is for learning alone."""

    def __init__(self, layout: Layout, hidden: list[int], units: int) -> None:
        super().__init__(layout, hidden)
        self.mixer = Mixer(layout.parts, layout.parts * layout.features, units)


class QmixModule(TeamModule):
    """MA-CC's senders and routers with a mixer, which learns with them and has no say in acting."""

    acts_as = TeamModule

    def build(self, settings: dict[str, Any]) -> nn.Module:
        """The networks of all kinds."""
        return MixedTeams(self.layout, list(settings["hidden"]), settings["mixing"])


class QmixLearner(QLearner):
    """The team's error is of the mix."""

    def squares(self, one: Asked) -> tuple[Tensor, Tensor]:
        """As for `QLearner`."""
        state = one.seen.flatten(2)
        ours: Any = self.agent.net
        aside: Any = self.agent.target
        error = one.errors(
            self.settings["gamma"],
            lambda parts: ours.mixer(parts, state[:, :-1]),
            lambda parts: aside.mixer(parts, state[:, 1:]),
        )
        return error.square(), error.detach().abs()


class QmixAlgorithm(VdnAlgorithm):
    """MA-CC with a mixer."""

    Params, Module, Learner = Qmix, QmixModule, QmixLearner
