"""Plot the distributions of the features that moved most, and how far each moved per group."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.reporting import figures

if TYPE_CHECKING:
    from models.sbd.windows import Windows

_COLUMNS = 3
_MOST_GROUPS = 12
"""Lines of the map: the groups that moved most."""


def draw(
    old: Windows,
    new: Windows,
    names: Sequence[str],
    groups: Sequence[Mapping[str, Any]],
    suffix: str,
) -> bytes:
    """Draw a panel per feature with both distribution functions, and a map of group by feature.

    Parameters
    ----------
    old, new : Windows
        Training set and new logs, all groups together.
    names : sequence of str
        Features to show, at least one.
    groups : sequence of mapping
        Results of :func:`models.sbd.drift.compare.compare`.
    suffix : str
        ``.svg`` or ``.png``.
    """
    from matplotlib import pyplot

    shown = [row for row in groups if row["features"]]
    shown = sorted(shown, key=lambda row: -row["features"][0]["ks"])[:_MOST_GROUPS]
    rows = -(-len(names) // _COLUMNS)
    with figures.style():
        fig = pyplot.figure(figsize=(9, 2.1 * rows + 0.7 + 0.3 * len(shown)), layout="constrained")
        halves = fig.subfigures(
            2, 1, squeeze=False, height_ratios=[2.1 * rows, 0.7 + 0.3 * len(shown)]
        )
        upper, lower = halves[0, 0], halves[1, 0]
        panels = upper.subplots(rows, _COLUMNS, sharey=True, squeeze=False)
        for axis in panels.flat[len(names) :]:
            axis.set_visible(False)
        for axis, name in zip(panels.flat, names, strict=False):
            pairs = ((old, "training set"), (new, "new logs"))
            for (table, word), colour in zip(pairs, figures.COLOURS, strict=False):
                axis.ecdf(
                    table.matrix([name])[:, 0], weights=_weights(table), color=colour, label=word
                )
            axis.set_title(name)
        panels[0, 0].legend(loc="best")
        axis = lower.subplots()
        distance = [[_ks(row, name) for name in names] for row in shown]
        image = axis.imshow(distance, vmin=0, vmax=1, aspect="auto", cmap="viridis")
        axis.grid(False)
        axis.set_xticks(range(len(names)), names, rotation=20, ha="right")
        axis.set_yticks(range(len(shown)), [row["group"] for row in shown])
        lower.colorbar(image, ax=axis, label="KS distance")
        if suffix == ".svg":
            title = "Features of new logs against the training set"
            return figures.svg(fig, "drift", title, standalone=True).encode()
        picture = io.BytesIO()
        fig.savefig(picture, format="png", dpi=150, facecolor="white", transparent=False)
        return picture.getvalue()


def _weights(table: Windows) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Weights of rows by which every connection counts alike, as in the test."""
    _, of, count = np.unique(table.group, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[of], dtype=np.float64)


def _ks(row: Mapping[str, Any], name: str) -> float:
    return next(float(one["ks"]) for one in row["features"] if one["name"] == name)
