"""Plan a set of simulated decisions: which control, in which scenario, by which seed.

Everything follows from a `Recipe`, so that a command that was killed goes on, and a sample holds
the very runs that the whole set has under the same names.
"""

from __future__ import annotations

import shlex
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Literal

import numpy as np
from pydantic import Field

from data.netsim.cc import CONTROLS, COUPLED
from data.strict import Strict
from models.decisions import source
from models.decisions.simulated import Play
from pipelines.league import draw
from pipelines.league.families import FAMILIES, MULTI, SINGLE

CLASSICAL = tuple(name for name in CONTROLS if name != "agent")
"""Controls that decide by themselves."""
SPLITS = ("train", "validation", "test")
SEED = 18
"""What scenarios are drawn with: not `pipelines.league.draw.SEED`, whose scenarios judge agents."""


class Recipe(Strict):
    """What a set consists of."""

    agent: Literal["tcco", "macc"] = "tcco"
    """Whose observations, actions and rewards; MA-CC's senders have one path."""
    seed: int = Field(SEED, ge=0)
    scenarios: int = Field(40, ge=1, le=1000)
    """Scenarios of each family."""
    replicas: int = Field(4, ge=1, le=1000)
    """Simulations of each control in each scenario, by other seeds."""
    share: float = Field(1.0, gt=0, le=1)
    """Share of the runs, drawn by their names; at least one of each control in each family."""
    seconds: float = Field(0.0, ge=0)
    """Length of a run; 0: as long as its scenario is in the league."""

    def command(self) -> str:
        """The command that makes the set anew; where it is written doesn't count."""
        changed = self.model_dump(exclude_defaults=True)
        words = [word for name, value in changed.items() for word in (f"--{name}", str(value))]
        return shlex.join(["python", "-m", "pipelines.decisions.generate", *words])


@dataclass(frozen=True)
class Task:
    """What one process simulates at a time: a control in a family's scenarios, once in each."""

    control: str
    family: str
    replica: int

    def file(self, split: str) -> PurePosixPath:
        """Where its decisions of a split are kept, in the set's folder."""
        folder = PurePosixPath(f"behaviour={self.control}", f"split={split}")
        return folder / f"{self.family}-{self.replica}.parquet"


def tasks(recipe: Recipe) -> list[Task]:
    """All tasks, those of the first replica first: a set that is cut off has some of everything.

    Controls that couple subflows take part in the scenarios of several paths alone, and MA-CC's
    decisions are of one path.
    """
    return [
        Task(control, family, replica)
        for replica in range(recipe.replicas)
        for family, one in FAMILIES.items()
        for control in CLASSICAL
        if (control not in COUPLED or one.standing == MULTI)
        and (recipe.agent == "tcco" or one.standing == SINGLE)
    ]


def split_of(number: int) -> str:
    """Split of a family's scenario by its number: of ten the last is for tests, the ninth chooses.

    A scenario with all its runs is in one split.
    """
    return {8: "validation", 9: "test"}.get(number % 10, "train")


def plays(recipe: Recipe, task: Task) -> dict[str, list[Play]]:
    """What a task simulates, by split; splits without any are absent."""
    found: dict[str, list[Play]] = {}
    for number, one in enumerate(scenarios(task.family, recipe.seed, recipe.scenarios)):
        if taken(recipe, task, number):
            play = Play(
                name(recipe, task, number),
                scenario(recipe, task.family, number),
                task.control,
                one.spec,
                simulation_seed(recipe, task.family, number, task.replica),
            )
            found.setdefault(split_of(number), []).append(play)
    return found


@cache
def scenarios(family: str, seed: int, each: int) -> list[draw.Drawn]:
    """A family's scenarios."""
    return draw.scenarios([family], seed, each)


def scenario(recipe: Recipe, family: str, number: int) -> str:
    """Name of a scenario, with the seed that it was drawn by: the league's are others."""
    return f"{family}-{number:03d}.{recipe.seed}"


def name(recipe: Recipe, task: Task, number: int) -> str:
    """Name of a run."""
    return f"{task.control}/{scenario(recipe, task.family, number)}/{task.replica}"


def simulation_seed(recipe: Recipe, family: str, number: int, replica: int) -> int:
    """Seed of a simulation: the same for all controls, which meet the same starts and losses."""
    words = [recipe.seed, zlib.crc32(family.encode()), number, replica]
    return int(np.random.SeedSequence(words).generate_state(1)[0] >> 1)


def taken(recipe: Recipe, task: Task, number: int) -> bool:
    """Whether a run belongs to the share that is asked for."""
    if recipe.share == 1:
        return True
    place = zlib.crc32(name(recipe, task, number).encode())
    return place < recipe.share * 2**32 or place == _least(recipe, task.control, task.family)


@cache
def _least(recipe: Recipe, control: str, family: str) -> int:
    every = (Task(control, family, replica) for replica in range(recipe.replicas))
    return min(
        zlib.crc32(name(recipe, task, number).encode())
        for task in every
        for number in range(recipe.scenarios)
    )


def steps(recipe: Recipe, family: str) -> int:
    """Decisions of a run."""
    first = scenarios(family, recipe.seed, recipe.scenarios)[0].spec
    interval_s: float = settings(recipe).params.observation.interval_us / 1e6
    return max(1, round((recipe.seconds or first.duration_s) / interval_s))


def settings(recipe: Recipe) -> Any:
    """Settings of the agent's decisions."""
    return source(recipe.agent).settings()
