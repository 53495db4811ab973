"""Budgets of the agents' trainings: settings, seeds and judged episodes, as ``params.yaml`` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from data.errors import UserError
from data.strict import Strict
from models.rl.line import TWIN

if TYPE_CHECKING:
    from models.rl.params import Run

PLAYED_BY_HAND = {"sampler", *TWIN}
"""Settings of an environment with which the policies by hand play in the same one."""


class Budget(Strict):
    """What one agent's training may cost, and how it is judged."""

    seeds: int = Field(1, ge=1, le=100)
    """Trainings: with the seed of `settings` (7 by default) and those after it."""
    episodes: int = Field(32, ge=4, le=1024)
    """Test episodes on which everybody plays."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What differs from the agent's own settings, as ``--set`` takes it; see
    `models.rl.params`."""


def checked(name: str, params: Run) -> Run:
    """The settings of a training that is to be judged, if it can be.

    Raises
    ------
    UserError
        When no network would be validated, or its validation can't be drawn beside the policies
        by hand, or they play in another environment.
    """
    if not 1 <= params.validate_every <= params.steps:
        raise UserError(
            f"{name}.settings.validate_every: from 1 to the {params.steps} steps, as the best "
            "network is judged"
        )
    if params.validation_episodes > params.num_envs:
        raise UserError(
            f"{name}.settings.validation_episodes: {params.validation_episodes}, give at most "
            f"num_envs={params.num_envs}: policies by hand play the first episode of each"
        )
    if other := sorted(set(params.env) - PLAYED_BY_HAND):
        raise UserError(
            f"{name}.settings.env.{other[0]}: policies by hand play in the environment as it is "
            f"by default: set no more than {', '.join(sorted(PLAYED_BY_HAND))}"
        )
    return params


def trainable(name: str, budget: Budget) -> Run:
    """The settings of the training that a budget stands for.

    Raises
    ------
    UserError
        When a setting is wrong, or the training couldn't be judged.
    """
    from models.rl import agents

    try:
        return checked(name, agents.settings(name, budget.settings))
    except UserError as error:
        raise UserError(str(error).replace(f"train {name}: ", f"{name}.settings.", 1)) from None


class AgentsParams(Strict):
    """Budgets of all agents."""

    tcco: Budget = Budget()
    nuwa: Budget = Budget()
    macc: Budget = Budget()

    def check(self, where: str) -> None:
        """Check the settings that a file has, which takes the trainer's code.

        Commands that read other parts of the file don't do so.

        Parameters
        ----------
        where : str
            The file, for messages.

        Raises
        ------
        UserError
            When a setting is wrong, or a training couldn't be judged.
        """
        for name in sorted(self.model_fields_set):
            try:
                trainable(name, self.of(name))
            except UserError as error:
                raise UserError(f"{where}: agents.{error}") from None

    def of(self, name: str) -> Budget:
        """Budget of one agent."""
        budget: Budget = getattr(self, name)
        return budget
