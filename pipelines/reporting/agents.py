"""Show what agents' environments and their training cost, as ``make bench`` measured."""

from __future__ import annotations

from typing import Any

from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, paragraph, table

COMMAND = "python benchmarks/run.py envs train"


def environments(inputs: Inputs) -> str:
    """Table of each environment's speed beside the bare simulator's and PCC-RL's."""
    found = inputs.benchmark("envs", COMMAND)
    rows: list[list[Any]] = []
    for name, one in found.items():
        if not isinstance(one, dict):
            continue
        low, high = sorted(one["over_pcc_rl"])
        rows.append(
            [
                name,
                f"{one['steps_per_cpu_s']:.0f}",
                f"{one['share_of_simulator']:.2f}",
                f"{one['threads2']:.2f}",
                f"{one['machine2']:.2f}",
                f"{low:.1f} to {high:.1f}",
                f"{one['packet_events_per_step']:.0f}",
            ]
        )
    columns = [
        Column("environment", number=False),
        Column("agent steps per CPU second"),
        Column("share of the bare simulator"),
        Column("two threads over one"),
        Column("two separate batches over one"),
        Column("times PCC-RL", number=False),
        Column("packet events in a step"),
    ]
    low, high = found["pcc_rl_steps_per_s"]
    note = paragraph(
        f"Made by {COMMAND}: batches of {one['environments']} environments with random actions. "
        "The bare simulator is the event loop alone with the same networks, intervals and actions "
        "in the same run, so that the share says what observing and rewarding cost. Steps in which "
        "an episode begins are left out. Two batches that share nothing gain side by side what the "
        f"machine has to give. PCC-RL makes {low} to {high} steps a second on a core."
    )
    return table(columns, rows, "Environments in one run") + note


def trainer(inputs: Inputs) -> str:
    """Table of the trainer's time beside that of plain loops that learn the same."""
    found = inputs.benchmark("train", COMMAND)
    aims, rings = found["aims"], found["ring_sample_of_32_us"].values()
    rows: list[list[Any]] = []
    for name, one in found.items():
        if "overhead_range" not in one:
            continue
        low, high = one["overhead_range"]
        rows.append(
            [
                name,
                f"{one['overhead']:.2f} ({low:.2f} to {high:.2f})",
                f"{one['trainer_us_per_step']:.0f}",
                f"{one['plain_us_per_step']:.0f}",
                f"{one['runner']['added_us_per_step']:.1f}",
            ]
        )
    columns = [
        Column("agent", number=False),
        Column("times the plain loop", number=False),
        Column("the trainer", group="us per step"),
        Column("a plain loop", group="us per step"),
        Column("added by the runner", group="us per step"),
    ]
    note = paragraph(
        f"Made by {COMMAND}: RLlib with our runners beside loops in plain torch that learn the "
        "same with the same network, in turns (median, least and most). At most "
        f"{aims['overhead']} times and {aims['runner_us']:g} us are aimed at. A sample of 32 takes "
        f"the ring {min(rings):.0f} to {max(rings):.0f} us (aim {aims['sample_us']:g})."
    )
    return table(columns, rows, "Training in one run") + note
