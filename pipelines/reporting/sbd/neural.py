"""Show the neural classifier's learning curve, and compare it with classifiers on features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from models.sbd.results.neural import CURVE, NEURAL, Compared, Point
from models.stats.intervals import Interval
from pipelines.reporting.figures import COLOURS, style, svg
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, Html, figure, paragraph, stacked, table

RIVALS = ("smartsbd-rf", "smartsbd-svm-all", "smartsbd-plus-lr", "smartsbd-plus-gb")
"""The best models on the 18 features and on the 44, by one protocol or another."""
COMMAND = "python benchmarks/run.py neural"


def write_curve(out: Path, curve: Sequence[Point], best: int) -> None:
    """Write ``curve.svg``, and ``curve.csv`` for ``dvc plots``.

    Parameters
    ----------
    out : Path
        Directory.
    curve : sequence of Point
        One point per epoch.
    best : int
        The epoch that was kept.
    """
    out.mkdir(parents=True, exist_ok=True)
    names = list(Point.model_fields)
    lines = [",".join(names), *(",".join(str(value) for _, value in row) for row in curve)]
    (out / "curve.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "curve.svg").write_text(_drawn(curve, best, standalone=True), encoding="utf-8")


def learning_curve(inputs: Inputs) -> str:
    """Learning curve of the network that was kept."""
    curve = inputs.table(CURVE, "neural", "make repro")
    losses = [math.inf if row.validation_loss is None else row.validation_loss for row in curve]
    best = losses.index(min(losses))
    return figure(_drawn(curve, best, standalone=False), "Learning curve of smartsbd-neural.")


def comparison(inputs: Inputs) -> str:
    """Table of paired differences of accuracy per protocol and rival."""
    path = inputs.root / "benchmarks" / "results" / NEURAL.name
    found = inputs.result(NEURAL, path, COMMAND).protocols
    columns = [
        Column("protocol", number=False),
        Column("neural"),
        Column("beside", number=False),
        Column("its accuracy"),
        Column("neural less it"),
        Column("by connection"),
    ]
    rows = [[_stacked(text) for text in row] for row in rows_of(found)]
    note = paragraph(
        "Accuracy per window on connections (and in the last rows conditions) that training "
        f"didn't see, 95 % intervals over connections, paired. Made by {COMMAND}."
    )
    return table(columns, rows, "Raw series against features") + note


def rows_of(protocols: Sequence[Compared]) -> list[list[str]]:
    """Rows of the comparison: protocol, ours, rival, its accuracy, difference, by connection."""
    return [
        [
            row.protocol,
            _written(row.window),
            name,
            _written(row.against[name].window),
            _written(row.against[name].window_difference, sign=True),
            _written(row.against[name].connection_difference, sign=True),
        ]
        for row in protocols
        for name in RIVALS
        if name in row.against
    ]


def _stacked(text: str) -> Html:
    """An accuracy with its interval beneath it, so that the table stays narrow."""
    mean, _, limits = text.partition(" [")
    return stacked(mean, limits.rstrip("]"))


def _written(value: Interval, *, sign: bool = False) -> str:
    """``0.957 [0.951, 0.962]``; with a sign for differences."""
    if value["mean"] is None or value["low"] is None or value["high"] is None:
        return "–"
    form = "{:+.3f} [{:+.3f}, {:+.3f}]" if sign else "{:.3f} [{:.3f}, {:.3f}]"
    return form.format(value["mean"], value["low"], value["high"])


def _drawable(loss: float | None) -> float:
    return math.nan if loss is None else loss


def _drawn(curve: Sequence[Point], best: int, *, standalone: bool) -> str:
    with style():
        from matplotlib import pyplot

        drawn, axes = pyplot.subplots(figsize=(5.2, 2.6))
        epochs = [row.epoch + 1 for row in curve]
        axes.plot(
            epochs, [_drawable(row.loss) for row in curve], color=COLOURS[0], label="training"
        )
        checked = [_drawable(row.validation_loss) for row in curve]
        axes.plot(epochs, checked, color=COLOURS[1], label="validation connections")
        axes.plot(epochs[best], checked[best], "o", color=COLOURS[1], label="kept")
        axes.set(xlabel="epoch", ylabel="cross-entropy (nats)", yscale="log")
        axes.legend()
        title = "Learning curve of smartsbd-neural"
        return svg(drawn, "neural-curve", title, standalone=standalone)
