"""Drawings of an agent's trainings: curves, performance profiles, and each seed's mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.files import write_text
from models.stats import aggregate
from pipelines.reporting.figures import COLOURS, style, svg
from pipelines.studies.agents import publish
from pipelines.studies.agents.statistics import KINDS, best_of
from pipelines.studies.environments.judge import CONSTANT, RANDOM

if TYPE_CHECKING:
    import polars as pl

    from pipelines.studies.agents.kept import Published

Floats = NDArray[np.float64]
POINTS = 60
"""Places at which seeds' curves are put together."""
LEVELS = 80


def write(folder: Path, one: Published, curves: pl.DataFrame) -> None:
    """Write each drawing as a file of its own."""
    for name, (draw, caption) in DRAWINGS.items():
        with style():
            figure = draw(one, curves)
            figure.tight_layout()
            text = svg(figure, f"{one.agent}-{name}", f"{one.agent}: {caption}", standalone=True)
        write_text(folder / f"{one.agent}-{name}.svg", text)


def _curves(one: Published, curves: pl.DataFrame) -> Any:
    """Draw each seed, and the interquartile mean over seeds with its band of 95 %."""
    figure = _figure(2)
    steps = publish.steps_of(one.problem)
    panels = (("return", "in training, which explores"), ("validation", "in validation, greedy"))
    for axis, (column, title) in zip(figure.axes, panels, strict=True):
        lines = [
            (part["step"].to_numpy().astype(float), part[column].to_numpy() / steps)
            for seed in sorted({*curves["seed"]})
            if len(part := curves.filter((curves["seed"] == seed) & curves[column].is_not_null()))
        ]
        for x, y in lines:
            axis.plot(x, y, color=COLOURS[0], alpha=0.25, linewidth=0.7)
        if len(lines) > 1:
            _band(axis, lines)
        axis.set(title=title, xlabel="steps", ylabel="mean reward of a step")
    if "twin_k" not in one.settings["env"]:
        figure.axes[0].sharey(figure.axes[1])
    for colour, kind in zip(COLOURS[1:], KINDS, strict=False):
        if kind in one.statistics.beside:
            mean = float(np.mean(_best(one, kind)))
            figure.axes[1].axhline(mean, color=colour, linestyle="--", label=_label(kind))
    figure.axes[1].legend(loc="lower right")
    return figure


def _band(axis: Any, lines: list[tuple[Floats, Floats]]) -> None:
    grid = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), POINTS)
    values = np.array([np.interp(grid, x, y) for x, y in lines])[None]
    # Seeds are runs, and each place of the grid is looked at by itself.
    tall = np.moveaxis(values, -1, 0).swapaxes(1, 2)
    low, high = aggregate.interval(aggregate.iqm, tall)
    axis.plot(grid, aggregate.iqm(tall), color=COLOURS[0], linewidth=2)
    axis.fill_between(grid, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)


def _profiles(one: Published, _: pl.DataFrame) -> Any:
    """Draw the share of seeds and episodes above each difference to the best constant."""
    figure = _figure(1)
    (axis,) = figure.axes
    base = _best(one, CONSTANT) if CONSTANT in one.statistics.beside else np.zeros(one.episodes)
    scores = publish.returns(one.seeds) - base
    others = {kind: _best(one, kind) - base for kind in KINDS if kind in one.statistics.beside}
    shown = [scores, *(value for kind, value in others.items() if kind not in (RANDOM, CONSTANT))]
    flat = np.concatenate([value.ravel() for value in shown])
    low, high = min(0.0, float(flat.min())), max(0.0, float(flat.max()))
    edge = 0.05 * (high - low) or 1.0
    levels = np.linspace(low - edge, high + edge, LEVELS)
    bounds = aggregate.interval(lambda x: aggregate.profile(x, levels), scores, whole=True)
    axis.plot(levels, aggregate.profile(scores, levels), color=COLOURS[0], label=one.agent)
    axis.fill_between(levels, *bounds, color=COLOURS[0], alpha=0.2, linewidth=0)
    for colour, (kind, value) in zip(COLOURS[1:], others.items(), strict=False):
        if kind != CONSTANT:
            shares = aggregate.profile(value[None], levels)
            axis.plot(levels, shares, color=colour, label=_label(kind))
    axis.axvline(0, color="#888888", linewidth=0.7)
    axis.set(xlabel="return less the best constant's, mean reward of a step",
             ylabel="share above it", ylim=(-0.02, 1.02), xlim=(levels[0], levels[-1]))  # fmt: skip
    axis.legend()
    return figure


def _seeds(one: Published, _: pl.DataFrame) -> Any:
    """Draw the mean of each seed, and where one more seed is to land."""
    figure = _figure(1)
    (axis,) = figure.axes
    means, limits = publish.returns(one.seeds).mean(axis=1), one.statistics.next_seed
    places = np.arange(len(means))
    axis.axhspan(limits.low, limits.high, color=COLOURS[0], alpha=0.12, linewidth=0,
                 label="one more seed, 95 %")  # fmt: skip
    axis.plot(places, means, "o", color=COLOURS[0], markersize=4)
    for colour, kind in zip(COLOURS[2:], KINDS[1:], strict=False):
        if kind in one.statistics.beside:
            mean = float(np.mean(_best(one, kind)))
            axis.axhline(mean, color=colour, linestyle="--", label=_label(kind))
    axis.set(xlabel="seed", ylabel="mean reward of a step")
    axis.set_xticks(places, list(one.seeds))
    axis.legend()
    return figure


def _best(one: Published, kind: str) -> Floats:
    found = best_of(one.by_hand, kind)
    return np.array([] if found is None else found.returns)


def _label(kind: str) -> str:
    return kind if kind == RANDOM else f"best {kind}"


def _figure(count: int) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * count + 0.6, 3.2))
    figure.subplots(1, count, squeeze=False)
    return figure


DRAWINGS: dict[str, tuple[Callable[..., Any], str]] = {
    "curves": (
        _curves,
        "Learning curves: thin, each seed; thick, the interquartile mean over seeds with its "
        "95 % interval at each place by itself",
    ),
    "profiles": (
        _profiles,
        "Performance profile: the share of seeds and test episodes in which the return is above "
        "the best constant's by more than a value, with its 95 % interval",
    ),
    "seeds": (
        _seeds,
        "Each seed's mean return in the test episodes, and the interval in which one more seed "
        "lands with 95 %",
    ),
}
"""Name -> (function that draws it, caption)."""
