"""Draws how a group's trainings did in validation."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from data.files import write_text
from pipelines.reporting.figures import COLOURS, style, svg
from pipelines.studies.comparisons.kept import Compared


def write(path: Path, one: Compared) -> None:
    """Write a group's curves as SVG."""
    with style():
        text = svg(_curves(one), f"compared-{one.group}", "Greedy returns in validation",
                   standalone=True)  # fmt: skip
    write_text(path, text)


def _curves(one: Compared) -> Any:
    """Thin lines are seeds, thick ones their means where all were validated."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6))
    axis = figure.subplots()
    shown = {name: entry for name, entry in one.entries.items()
             if not entry.own_reward or name.endswith("-printed")}  # fmt: skip
    for i, (colour, (name, entry)) in enumerate(zip(cycle(COLOURS), shown.items(), strict=False)):
        line = "-" if i < len(COLOURS) else "--"
        for seed in entry.seeds.values():
            axis.plot(seed.steps, seed.validation, line, color=colour, alpha=0.25, linewidth=0.7)
        common = sorted(set.intersection(*(set(s.steps) for s in entry.seeds.values())))
        mean = [np.mean([dict(zip(s.steps, s.validation, strict=True))[step]
                         for s in entry.seeds.values()]) for step in common]  # fmt: skip
        axis.plot(common, mean, line, color=colour, label=name)
    axis.set(xlabel="steps", ylabel="mean reward of a step")
    axis.legend(fontsize=7)
    figure.tight_layout()
    return figure
