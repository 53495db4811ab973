"""Train, compare and keep models: each family has trainings of its own."""

from __future__ import annotations

import argparse

from models.families import FAMILIES
from models.rl.agents import AGENTS
from models.rl.comparisons.lines import COMPARISONS
from pipelines import lazy

OWN: dict[str, str] = {"sbd": "pipelines.sbd.train.command"}
"""Family with trainings of its own -> their module; all others use `pipelines.train_family`."""
TASKS: dict[str, tuple[str, str]] = (
    {
        name: (OWN.get(name, "pipelines.train_family"), line.summary)
        for name, line in FAMILIES.items()
    }
    | {name: ("pipelines.rl.command", line.summary) for name, line in AGENTS.items()}
    | {
        "offline": ("pipelines.offline.train", "learn an agent from logged decisions alone"),
    }
)
"""Name -> (module with ``add_arguments``, ``run`` and ``EXAMPLE``, one line of help)."""
COMPARED = {name: ("pipelines.rl.command", line.summary) for name, line in COMPARISONS.items()}
"""The same of what agents are compared with, which docs/training.md lists."""

EXAMPLE = """examples:
  cczoo train sbd all --features data/processed/sbd.parquet --events data/interim/events
  cczoo train sbd --help    # every training of shared bottlenecks
  cczoo train macc --set steps=20000
  cczoo train offline tcco --method cql --decisions data/decisions/mine
  cczoo train macc-qmix     # docs/training.md lists all comparisons and ablations of the agents"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    lazy.add(parser, "task", TASKS, more=COMPARED)


def run(args: argparse.Namespace) -> int:
    """Hand over to the family's training."""
    return lazy.run(TASKS | COMPARED, args.task, args)
