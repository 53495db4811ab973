"""Plot the centres of the groups of path conditions."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipelines.reporting import figures

if TYPE_CHECKING:
    from models.sbd.conditions.clusters import Clusters

_COLUMNS = 4


def draw(clusters: Clusters, sizes: Mapping[str, int]) -> dict[str, bytes]:
    """Draw the centres, one panel each, on one logarithmic axis.

    Parameters
    ----------
    clusters : Clusters
        The groups.
    sizes : mapping
        Group -> connections assigned to it.

    Returns
    -------
    dict
        ``groups.svg`` and ``groups.png``: file name -> content.
    """
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    count = len(clusters.centres)
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    time_s = (np.arange(clusters.settings.points) + 0.5) / clusters.settings.points
    time_s = time_s * clusters.settings.span_s
    with figures.style():
        fig, axes = pyplot.subplots(
            rows,
            columns,
            figsize=(2.7 * columns + 0.6, 2.3 * rows + 0.4),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for axis in axes.flat[count:]:
            axis.set_visible(False)
        for axis, name, centre in zip(axes.flat, clusters.names, clusters.centres, strict=False):
            rtt_ms = np.exp2(np.array(centre)) / 1e3
            for side, (word, colour) in enumerate(
                zip(("WiFi", "other"), figures.COLOURS, strict=False)
            ):
                axis.plot(time_s, rtt_ms[:, side], color=colour, label=word)
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(ScalarFormatter())
            axis.yaxis.set_minor_formatter(NullFormatter())
            axis.set_title(f"{name}: {sizes.get(name, 0)} connections")
        axes[0, 0].legend(loc="best")
        fig.supxlabel("seconds", fontsize=9)
        fig.supylabel("RTT, ms", fontsize=9)
        title = f"RTT of both subflows at the centres of {count} groups of path conditions"
        picture = io.BytesIO()
        fig.savefig(picture, format="png", dpi=150, transparent=False, facecolor="white")
        return {
            "groups.svg": figures.svg(fig, "conditions", title, standalone=True).encode(),
            "groups.png": picture.getvalue(),
        }
