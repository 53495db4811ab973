"""Draws scores of the league, and how online trainings begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from data.files import write_text
from pipelines.league.families import STANDINGS
from pipelines.reporting.figures import COLOURS, style, svg
from pipelines.studies.offline import words
from pipelines.studies.offline.kept import SCRATCH
from pipelines.studies.offline.results import Study
from pipelines.studies.offline.statistics import GROUPS

CAPTIONS = {
    "scores": "Power in the league, interquartile means with 95 % intervals",
    "tuning": "Greedy returns of online trainings that begin with nothing, or with a network from "
    "logs; those end when they do as well as the first at its end",
}


def drawn(study: Study, standalone: bool) -> dict[str, tuple[str, str]]:
    """SVG and caption of each figure for which there is something to draw, by its name."""
    found = {}
    made = {"scores": _scores, "tuning": _tuning}
    for name, draw in made.items():
        if name == "tuning" and study.tuning is None:
            continue
        with style():
            figure = draw(study)
            figure.tight_layout()
            found[name] = svg(figure, f"offline-{name}", CAPTIONS[name], standalone), CAPTIONS[name]
    return found


def write(folder: Path, study: Study) -> None:
    """Write each figure as a file of its own."""
    for name, (text, _) in drawn(study, standalone=True).items():
        write_text(folder / f"{name}.svg", text)


def _scores(study: Study) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 2.8))
    rows = study.rows[::-1]
    for axis, group in zip(figure.subplots(1, len(GROUPS), sharey=True), GROUPS, strict=True):
        for i, row in enumerate(rows):
            one = row.scores[group]
            colour = COLOURS[0] if row.player in study.methods else COLOURS[1]
            axis.plot([one.low, one.high], [i, i], color=colour)
            axis.plot([one.value], [i], "o", color=colour, markersize=4)
        axis.set_yticks(range(len(rows)), [words.title(row.player) for row in rows])
        axis.set(xlabel="power", title=STANDINGS.get(group, "all families"))
    return figure


def _tuning(study: Study) -> Any:
    from matplotlib.figure import Figure

    assert study.tuning is not None
    figure = Figure(figsize=(6.4, 3.4))
    axis = figure.subplots()
    for colour, (name, mine) in zip(COLOURS, study.tuning.curves.items(), strict=False):
        label = "from nothing" if name == SCRATCH else words.title(name)
        for one in mine.values():
            axis.plot(one.steps, one.validation, color=colour, alpha=0.3, linewidth=0.8)
        # A mean of those that are still at it says nothing: the first validation has them all.
        first = [one.validation[0] for one in mine.values() if one.validation]
        axis.plot([study.tuning.every], [np.mean(first)], "o", color=colour, label=label)
    axis.set(xlabel="steps", ylabel="mean reward of a step")
    axis.legend(fontsize=7)
    return figure
