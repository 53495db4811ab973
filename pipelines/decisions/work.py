"""Simulate the tasks of a set of decisions, on this machine's cores or on a Ray cluster."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.decisions import files
from models import parallel
from models.decisions import source
from models.decisions.simulated import PLAYERS
from pipelines.decisions import plan
from pipelines.decisions.plan import Recipe, Task
from pipelines.output import progress


@dataclass
class Made:
    """What a command has made, and what it cost."""

    decisions: int = 0
    bytes: int = 0
    cpu_s: float = 0.0

    def plain(self) -> dict[str, Any]:
        """As JSON has it, with what a decision costs."""
        return {
            "decisions": self.decisions,
            "cpu_s": self.cpu_s,
            "decisions_per_cpu_s": self.decisions / self.cpu_s if self.cpu_s else 0.0,
            "mb_per_million": self.bytes / self.decisions if self.decisions else 0.0,
        }


@dataclass(frozen=True)
class Result:
    """A task's files by their split, the decisions in them and what they cost."""

    files: dict[str, bytes]
    decisions: int
    cpu_s: float


def simulate(out: Path, recipe: Recipe, jobs: int, made: Made) -> None:
    """Do the tasks whose files aren't all there, and add them to what was made."""
    due = [
        task
        for task in plan.tasks(recipe)
        if any(not (out / task.file(split)).is_file() for split in plan.plays(recipe, task))
    ]
    # Without a cluster or a second process there is nothing to be gained from Ray.
    workers = jobs if jobs > 1 or "RAY_ADDRESS" in os.environ else 0
    done = parallel.stream(work, due, recipe, workers)
    for number, result in progress(done, "decisions", len(due)):
        if isinstance(result, Exception):
            raise result
        for split, content in result.files.items():
            files.keep(out / due[number].file(split), content)
            made.bytes += len(content)
        made.decisions += result.decisions
        made.cpu_s += result.cpu_s


def work(recipe: Recipe, task: Task) -> Result:
    """Simulate a task."""
    begun, count = time.process_time(), 0
    settings = plan.settings(recipe)
    about = source(recipe.agent).about(settings).model_copy(update={"command": recipe.command()})
    wanted = plan.plays(recipe, task)
    together = [play for plays in wanted.values() for play in plays]
    played = PLAYERS[recipe.agent](together, plan.steps(recipe, task.family), settings)
    found = {}
    for split, plays in wanted.items():
        seeds = {play.name: play.seed for play in plays}
        runs = sorted((run for run in played if run.name in seeds), key=lambda run: run.name)
        own = about.model_copy(update={"seeds": tuple(seeds[run.name] for run in runs)})
        found[split], rows = files.as_bytes(own, runs)
        count += rows
    return Result(found, count, time.process_time() - begun)
