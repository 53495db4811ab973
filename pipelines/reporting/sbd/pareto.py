"""Show accuracy against cost, as a table on a terminal and as a figure."""

from __future__ import annotations

from export.budget import FIGURES
from models.card import interval
from models.sbd.results.budget import Front
from pipelines.reporting import figures


def show(result: Front) -> None:
    """Print the front; costs that exceed the budget are marked."""
    keys = _keys(result)
    chosen = result.chosen.name if result.chosen else None
    wide = max(len(row.name) for row in result.front)
    print(f"{'model':<{wide}}  {'accuracy':<20}" + "".join(f"{k:>8}" for k in keys) + "  fits")
    for row in result.front:
        costs = [
            ("~" if key in row.estimated else "") + f"{row.costs[key]:.4g}"
            if key in row.costs
            else "–"
            for key in keys
        ]
        fits = "chosen" if row.name == chosen else "no" if row.exceeds else "yes"
        line = f"{row.name:<{wide}}  {interval(row.accuracy):<20}"
        print(line + "".join(f"{text:>8}" for text in costs) + f"  {fits}")
    print(
        f"{result.tried} tried on {result.windows} windows of {result.connections} "
        "connections; accuracy per window on connections left out"
    )
    if result.bpf != "measured":
        print(f"BPF: {result.bpf}: insns marked ~ are estimates from the number of nodes")


def draw(result: Front) -> str:
    """Draw the front as an SVG file, with a panel per kind of cost and dashed limits."""
    from matplotlib import pyplot

    keys = _keys(result)
    chosen = result.chosen.name if result.chosen else None
    with figures.style():
        fig, axes = pyplot.subplots(
            1, len(keys), figsize=(3.3 * len(keys), 3.0), sharey=True, squeeze=False
        )
        for axis, key in zip(axes[0], keys, strict=True):
            rows = [row for row in result.front if key in row.costs]
            for row in rows:
                colour = figures.COLOURS[1 if row.name == chosen else 0]
                axis.errorbar(
                    row.costs[key], row.accuracy["mean"], figures.bars([row.accuracy]), fmt="o",
                    color=colour, mfc="none" if key in row.estimated else colour, elinewidth=0.8,
                    ms=4,
                )  # fmt: skip
            for limit in (v for k, v in result.budget.items() if k in (key, f"c.{key}")):
                axis.axvline(limit, color=figures.INK, linestyle="--", linewidth=0.9)
            if rows and all(row.costs[key] > 0 for row in rows):
                axis.set_xscale("log")
            axis.set_xlabel(FIGURES[key].unit, fontsize=8)
        axes[0][0].set_ylabel("accuracy per window")
        return figures.svg(fig, "pareto", "Accuracy against cost", standalone=True)


def _keys(result: Front) -> list[str]:
    """Kinds of cost that at least one model has, by their short names."""
    have = {key for row in result.front for key in row.costs}
    return [key for key in ("ns", "bytes", "insns", "stack") if key in have]
