"""Evaluate a classifier on a table of features, or congestion controls in the simulator."""

from __future__ import annotations

import argparse

from models.families import FAMILIES
from pipelines import lazy, names

TASKS: dict[str, tuple[str, str]] = {
    **{name: ("pipelines.evaluate_family", line.summary) for name, line in FAMILIES.items()},
    "sbd": ("pipelines.sbd.evaluate", "a classifier or rule on a table of features"),
    "cc": ("pipelines.evaluate_cc", "congestion controls on simulated scenarios, over seeds"),
}
"""Name -> (module with ``add_arguments``, ``run`` and ``EXAMPLE``, one line of help)."""

EXAMPLE = """examples:
  cczoo evaluate sbd --model smartsbd-plus --features data/processed/sbd.parquet --json
  cczoo evaluate cc --scenario tcco-fig9-loss --cc cubic,bbr --seeds 10 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    # The simulator's arguments take its imports, which a mistyped name is spared.
    lazy.add(parser, "task", TASKS, early={"cc": names.check_simulation})


def run(args: argparse.Namespace) -> int:
    """Hand over to the task's own command."""
    return lazy.run(TASKS, args.task, args)
