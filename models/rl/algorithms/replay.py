"""Double DQN from a ring: TCCO's Transformer on sequences, MA-CC's teams on single steps."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from models.rl.algorithms.base import AgentAlgorithm
from models.rl.learners.q import QLearner
from models.rl.networks.dueling import TeamModule
from models.rl.networks.transformer import TransformerModule
from models.rl.params import TransformerDqn, Vdn
from models.rl.ring import FIELDS, Ring, Windows
from models.rl.schedule import fallen


class ReplayAlgorithm(AgentAlgorithm):
    """Some rows of all environments, then the updates that are due for them."""

    def setup(self, config: Any) -> None:
        """Make the ring besides."""
        super().setup(config)
        settings = self.settings
        runners = max(1, self.config.num_env_runners)
        self.ring = Ring(
            settings["capacity"],
            settings["num_envs"] * runners,
            self.layout.parts,
            self.layout.features,
            length=settings.get("context", 1),
            seed=settings["seed"],
            alpha=settings["alpha"],
            own=settings.get("own_rewards", False),
        )
        self._renewed = 0

    @property
    def epsilon(self) -> float:
        """Share of random actions now."""
        settings = self.settings
        first, last = settings["epsilon"], settings["last_epsilon"]
        if settings["epsilon_decay"] is not None:
            return float(max(last, first * settings["epsilon_decay"] ** self.steps))
        return float(fallen(first, last, min(1.0, self.steps / settings["epsilon_steps"])))

    def training_step(self) -> None:
        """Sample and learn in turns until a point of the curve is due."""
        settings = self.settings
        found: dict[str, float] = {}
        wanted = self.steps + settings["report_every"]
        while self.steps < wanted:
            before = self.steps
            fragments = self.gather(rows=settings["rows"], epsilon=self.epsilon)
            if all(one is None for one in fragments):
                break
            self.ring.add(fragments)
            due = self.steps // settings["update_every"] - before // settings["update_every"]
            if self.steps >= settings["learning_starts"] and self.ring.starts and due:
                found = self._learn(due)
                self.send_weights()
        self.report({"epsilon": self.epsilon, **found})

    def _learn(self, due: int) -> dict[str, float]:
        """All updates that are due in one call; windows are drawn for all of them first."""
        settings, learner = self.settings, cast(QLearner, self.learner)
        drawn = self.ring.sample(due * settings["batch"], settings["beta"])
        arrays = arrays_of(drawn)
        if settings["alpha"]:
            # By priorities they come in the order of their places.
            order = self.rng.permutation(len(drawn.places))
            arrays = {name: value[order] for name, value in arrays.items()}
        result = self.learn(arrays, minibatch_size=settings["batch"])
        errors = result.pop("errors")
        if settings["alpha"]:
            self.ring.set_priorities(drawn.places[order], errors)
        self.updates += due
        renewals = self.steps // settings["target_every"]
        if settings["tau"] == 1.0 and renewals > self._renewed:
            learner.renew()
            self._renewed = renewals
        return {**result, "error": float(np.mean(errors))}

    def get_run(self) -> dict[str, Any]:
        """With the ring."""
        return super().get_run() | {"ring": self.ring.get_state(), "renewed": self._renewed}

    def set_run(self, run: dict[str, Any]) -> None:
        """With the ring."""
        super().set_run(run)
        self.ring.set_state(run["ring"])
        self._renewed = run["renewed"]


def arrays_of(drawn: Windows) -> dict[str, Any]:
    """What a learner takes of windows."""
    own = {} if drawn.own is None else {"own": drawn.own}
    return {name: getattr(drawn, name) for name in (*FIELDS, "weights")} | own


class TransformerDqnAlgorithm(ReplayAlgorithm):
    """TCCO."""

    Params, Module, Learner = TransformerDqn, TransformerModule, QLearner


class VdnAlgorithm(ReplayAlgorithm):
    """MA-CC."""

    Params, Module, Learner = Vdn, TeamModule, QLearner
