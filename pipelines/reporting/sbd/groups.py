"""Show what ``cczoo train sbd groups`` decided: on a terminal, as a figure, in the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from models.card import interval
from models.sbd.results.groups import GROUPS, Grouped, GroupRow
from models.stats.intervals import Interval
from pipelines.reporting import figures, markup
from pipelines.reporting.inputs import Inputs

COMMAND = (
    "cczoo train sbd groups --by family --features data/processed/sbd.parquet --params params.yaml "
    "--out reports/groups --no-register"
)
NAMED = 40
"""Up to this number, groups have their names in the figure and all their rows on a terminal."""


def show(result: Grouped) -> None:
    """Print the counts and a row per group; of many groups, only those with their own model."""
    from rich.console import Console
    from rich.table import Column, Table

    rows, counts = result.groups, result.counts
    if len(rows) > NAMED:
        rows = tuple(row for row in rows if row.decision != "pooled")[:NAMED]
    # On 80 columns a long name of a group is folded, and no number is cut.
    heads = ("conn.", "windows", "own", "pooled", "own less pooled", "takes")
    columns = [Column("group", overflow="fold"), *(Column(head, no_wrap=True) for head in heads)]
    view = Table(*columns, box=None, padding=(0, 1, 0, 0))
    for row in rows:
        sizes = ("–" if n is None else str(n) for n in (row.connections, row.windows))
        means = ("–" if one is None else f"{one['mean']:.3f}" for one in (row.own, row.pooled))
        view.add_row(row.group, *sizes, *means, interval(row.difference), row.decision)
    Console().print(view)
    if len(rows) < len(result.groups):
        print(f"{len(rows)} of {len(result.groups)} groups shown: all are in groups.json")
    for row in rows:
        if row.difference is None:
            print(f"{row.group}: {row.reason}")
    print(
        f"{counts.own} groups with a model of their own, {counts.pooled} with "
        f"{result.model}, {counts.failed} failed"
    )
    if result.rows_without_group:
        print(
            f"{result.rows_without_group} of {result.rows} rows are in no group: {result.model}",
            file=sys.stderr,
        )


def draw(result: Grouped) -> str:
    """The differences with their intervals as an SVG file, the largest at the top."""
    return _draw(result, standalone=True)


def groups(inputs: Inputs) -> str:
    """Section of the report: the figure, a row per group, and how it was decided."""
    result = inputs.table(GROUPS, "groups", COMMAND)
    columns = [
        markup.Column("group", number=False),
        markup.Column("connections"),
        markup.Column("windows"),
        markup.Column("own", group="windows right, connections left out"),
        markup.Column("pooled", group="windows right, connections left out"),
        markup.Column("own less pooled", group="windows right, connections left out"),
        markup.Column("own less pooled", group="fixed test set"),
        markup.Column("takes", number=False),
    ]
    rows = [
        [
            row.group,
            row.connections,
            row.windows,
            *(row.own, row.pooled, row.difference),
            row.test.difference if row.test else None,
            _takes(row),
        ]
        for row in result.groups
    ]
    counts = result.counts
    level = round(100 * result.confidence)
    text = (
        f"Groups by {', '.join(result.columns)}: {counts.own} take a model of their own, "
        f"{counts.pooled} the pooled {result.model}, {counts.failed} failed. A group "
        f"takes its own where the {level} % interval of the difference (paired bootstrap over "
        "connections) lies above zero. Both models are made alike, settings chosen within their "
        "own training rows, and neither has seen the connections that it is judged on. The fixed "
        "test set, which nothing was chosen on, shows afterwards how both do."
    )
    picture = markup.figure(
        _draw(result, standalone=False), f"Accuracy of own less pooled, {level} % intervals"
    )
    return picture + markup.table(columns, rows, "A model for each group") + markup.paragraph(text)


def _draw(result: Grouped, standalone: bool) -> str:
    from matplotlib import pyplot

    rows = [(row, row.difference) for row in result.groups if row.difference is not None]
    rows.sort(key=lambda one: one[1]["mean"] or 0.0)
    named = len(rows) <= NAMED
    height = 0.8 + 0.24 * len(rows) if named else 6.0
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(6.4, max(1.6, height)))
        for decision, colour in (("own", 2), ("pooled", 6)):
            at = [i for i, (row, _) in enumerate(rows) if row.decision == decision]
            _bars(axis, at, [rows[i][1] for i in at], decision, figures.COLOURS[colour])
        axis.axvline(0.0, color=figures.INK, linewidth=0.8)
        axis.set_xlabel("accuracy per window: own model less the pooled one")
        if named:
            axis.set_yticks(range(len(rows)), [row.group for row, _ in rows])
        else:
            axis.set_ylabel(f"{len(rows)} groups")
        axis.legend(title="takes", loc="lower right")
        title = "Own models less the pooled one, per group"
        return figures.svg(fig, "groups", title, standalone=standalone)


def _bars(axis: Any, at: Sequence[int], values: Sequence[Interval], name: str, colour: str) -> None:
    mean = [value["mean"] for value in values]
    spread = figures.bars(values)
    axis.errorbar(mean, at, xerr=spread, fmt="o", ms=3, elinewidth=0.8, color=colour, label=name)


def _takes(row: GroupRow) -> str:
    if row.decision == "own":
        return "own"
    return f"{row.decision}: {row.reason}" if row.difference is None else row.decision
