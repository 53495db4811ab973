"""Logs of which the truth is known: both kinds of who decides, in the same simulated scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import Field

from data.decisions import files
from data.decisions.run import Run
from data.strict import Strict
from models.decisions import source
from models.decisions.simulated import Play, Plays, runs
from models.decisions.tcco import Settings
from models.envs.samplers import two_paths
from models.envs.scripted import Policy, tcco_constant, tcco_tracking
from models.offline.rolled import about, mostly, rolled

EXPLORED, CONTROLS = "scripts that explore", "controls as a kernel has them"
KINDS = (EXPLORED, CONTROLS)
"""Rules by hand that act as an agent does, a fifth of their actions at random; and controls that
never explore, whose actions are read from their windows."""
SCRIPTS: dict[str, Policy] = {
    "track-1.25": tcco_tracking(1.25),
    "track-0.6": tcco_tracking(0.6),
    "window-40": tcco_constant(40),
    "window-300": tcco_constant(300),
}
"""What the rules are: windows of so much of what a path holds, and constant ones."""
RANDOM = 0.2
CLASSICAL = ("cubic", "reno", "bbr", "vegas")


class Size(Strict):
    """How large the study is."""

    scenarios: int = Field(32, ge=1)
    steps: int = Field(300, ge=1)
    """Decisions of a run."""


@dataclass(frozen=True)
class Place:
    """A scenario with its number and the simulation's seed."""

    number: int
    seed: int

    def play(self, control: str) -> Play:
        """The simulation under a control."""
        spec = two_paths(np.random.default_rng([self.seed, self.number]))
        seed = 1_000 * self.seed + self.number
        return Play(f"{control}-{self.name}", self.name, control, spec, seed)

    @property
    def name(self) -> str:
        """What runs say as their scenario."""
        return f"place-{self.seed}-{self.number}"

    @classmethod
    def read(cls, name: str) -> Place:
        """The place of a scenario's name."""
        _, seed, number = name.split("-")
        return cls(int(number), int(seed))


def script(name: str, seed: int) -> Policy:
    """One of `SCRIPTS` as it decides in logs."""
    return mostly(SCRIPTS[name], RANDOM, seed)


def batch(places: list[Place], steps: int) -> Plays:
    """Environments in which an agent's orders move the windows."""
    plays = [place.play("agent") for place in places]
    return Plays(plays, params={"steps": steps}, threads=1, stagger=False)


def write(kind: str, folder: Path, size: Size, seed: int) -> Path:
    """Write logs of a kind; returns the file."""
    path = folder / f"{'explored' if kind == EXPLORED else 'controls'}-{seed}.parquet"
    places = [Place(number, seed) for number in range(size.scenarios)]
    if kind == EXPLORED:
        files.write(path, about(batch(places[:1], 1)), _explored(places, size, seed))
        return path
    settings = Settings()
    made = (
        run
        for control in CLASSICAL
        for run in runs([place.play(control) for place in places], size.steps, settings)
    )
    files.write(path, source("tcco").about(settings), made)
    return path


def _explored(places: list[Place], size: Size, seed: int) -> Iterator[Run]:
    for number, name in enumerate(SCRIPTS):
        envs = batch(places, size.steps)
        policy = script(name, 10 * seed + number)
        for place, run in zip(places, rolled(envs, policy, name, 0, size.steps), strict=True):
            yield replace(run, name=f"{name}-{place.name}", scenario=place.name)
        envs.close()
