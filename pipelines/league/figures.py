"""Draw the league's figures: performance profiles, and goodput over delay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.files import write_text
from models.stats.aggregate import interval, profile
from pipelines.league.families import FAMILIES, REFERENCE, STANDINGS
from pipelines.league.kept import Figures
from pipelines.league.standings import Place, scores
from pipelines.reporting.figures import COLOURS, style, svg

Ranking = Mapping[str, Sequence[Place]]
LEVELS = np.linspace(0.0, 1.0, 51)
_ALWAYS = ("bbr", REFERENCE, "reno")
_RESAMPLES = 500


def drawn(figures: Figures, ranking: Ranking, standalone: bool) -> dict[str, tuple[str, str]]:
    """SVG and caption of each figure for which there is a standing, by its name."""
    there = [name for name in STANDINGS if name in ranking]
    found = {}
    for name, (draw, caption) in FIGURES.items() if there else ():
        with style():
            figure = _panels(len(there))
            for axis, standing in zip(figure.axes, there, strict=True):
                draw(axis, figures, ranking[standing])
                axis.set_title(STANDINGS[standing])
            figure.tight_layout()
            found[name] = svg(figure, f"league-{name}", caption, standalone), caption
    return found


def write(folder: Path, figures: Figures, ranking: Ranking) -> None:
    """Write each figure as a file of its own; those of an earlier league that has more go."""
    found = drawn(figures, ranking, standalone=True)
    for name in FIGURES:
        path = folder / f"{name}.svg"
        if name in found:
            write_text(path, found[name][0])
        elif path.is_file() and f'id="league-{name}-' in path.read_text(encoding="utf-8"):
            path.unlink()


def written(folder: Path, ranking: Ranking) -> dict[str, tuple[str, str]]:
    """Figures that `write` makes: name -> (path relative to the folder's parent, caption)."""
    return {
        name: (f"{folder.name}/{name}.svg", caption)
        for name, (_, caption) in FIGURES.items()
        if any(standing in ranking for standing in STANDINGS)
    }


def chosen(places: Sequence[Place]) -> list[str]:
    """Players that a figure of curves shows: the first of the ranking, and the best known ones."""
    order = [place.cc for place in places]
    known = [cc for cc in _ALWAYS if cc in order]
    leaders = [cc for cc in order if cc not in known][: len(COLOURS) - len(known)]
    return [cc for cc in order if cc in (*leaders, *known)]


def _panels(count: int) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * count, 3.8))
    figure.subplots(1, count, squeeze=False)
    return figure


def _profiles(axis: Any, figures: Figures, places: Sequence[Place]) -> None:
    """Draw the share of scenarios above each power, with bands of 95 %."""
    members = [n for n, family in FAMILIES.items() if family.standing == places[0].family]
    families = [figures.played[name] for name in members]
    players = chosen(places)
    power = scores(players, families, figures.rows, "power")
    lows, highs = interval(lambda one: profile(one, LEVELS), power, resamples=_RESAMPLES)
    curves = zip(players, profile(power, LEVELS), lows, highs, COLOURS, strict=False)
    for cc, shares, low, high, colour in curves:
        axis.plot(LEVELS, shares, color=colour, label=cc)
        axis.fill_between(LEVELS, low, high, color=colour, alpha=0.12, linewidth=0)
    axis.set(xlabel="power", ylabel="share of runs above it", xlim=(0, 1), ylim=(0, 1))
    axis.legend()


def _goodput_over_delay(axis: Any, _: Figures, places: Sequence[Place]) -> None:
    """Draw a point for each player; the upper left is best."""
    for place in places:
        x, y = place.metrics["rtt_ratio"], place.metrics["goodput"]
        colour = COLOURS[0] if place.cc not in _ALWAYS else COLOURS[1]
        axis.errorbar(x.value, y.value, xerr=_bars(x), yerr=_bars(y), color=colour, marker="o",
                      markersize=3, linewidth=0.5)  # fmt: skip
        axis.annotate(place.cc, (x.value, y.value), xytext=(3, 3), textcoords="offset points",
                      fontsize=7)  # fmt: skip
    axis.set(xlabel="RTT over that of the idle path", ylabel="share of the most goodput")


def _bars(one: Any) -> list[list[float]] | None:
    if one.low is None or one.high is None:
        return None
    return [[max(0.0, one.value - one.low)], [max(0.0, one.high - one.value)]]


FIGURES: dict[str, tuple[Callable[..., None], str]] = {
    "profiles": (_profiles, "Performance profiles: the share of runs whose power is above a value"),
    "delay": (
        _goodput_over_delay,
        "Goodput over delay, interquartile means with 95 % intervals; the upper left is best",
    ),
}
"""Name -> (function that draws a standing, caption)."""
