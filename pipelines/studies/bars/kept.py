"""Figures of one agent as they stand beside the page."""

from __future__ import annotations

from pathlib import Path

from data.results import Result, ResultFile
from pipelines.studies.bars.beyond import Fair, Outside
from pipelines.studies.bars.judge import Cleared

COMMAND = "python -m pipelines.studies.bars.command"


class Measured(Result):
    """All that is known of an agent.

    Attributes
    ----------
    name : str
        ``tcco``, ``nuwa-rl`` or ``macc``.
    agent : str
        Name of its training.
    steps, seed : int or None
        How long that took, and the seed that it had.
    training : str
        Its training's command.
    place : str
        Where that leaves it.
    weights : str
        SHA-256.
    seeds : int
        Runs of each.
    command : str
        What prints the same figures.
    bars, conditions, fairness : tuple
    """

    name: str
    agent: str
    steps: int | None
    seed: int | None
    training: str
    place: str
    weights: str
    seeds: int
    command: str
    bars: tuple[Cleared, ...]
    conditions: tuple[Outside, ...]
    fairness: tuple[Fair, ...]


def file_of(name: str) -> ResultFile[Measured]:
    """The file of an agent's figures."""
    return ResultFile(f"{name}.json", Measured, COMMAND)


def read(folder: Path, names: tuple[str, ...]) -> list[Measured]:
    """Figures of those agents that have any in a folder."""
    there = [file_of(name) for name in names]
    return [file.read(folder) for file in there if (folder / file.name).is_file()]
