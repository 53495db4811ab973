"""Draw what logs cover: windows by base RTTs, and actions by windows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import UserError
from data.files import write_file, write_text

if TYPE_CHECKING:
    from models.offline.support import Support

KINDS = (".svg", ".png")


def check(path: Path) -> None:
    """Refuse a figure of another kind.

    Raises
    ------
    UserError
        With the kinds there are.
    """
    if path.suffix not in KINDS:
        raise UserError(f"--plot {path}: give a name that ends with {' or '.join(KINDS)}")


def write(path: Path, support: Support, actions: Sequence[str]) -> None:
    """Draw it into a file."""
    from pipelines.reporting.figures import style, svg

    title = "Logged decisions: windows by base RTTs, and their actions"
    with style():
        figure = _drawn(support, actions)
        if path.suffix == ".svg":
            write_text(path, svg(figure, "coverage", title, standalone=True))
        else:
            write_file(path, lambda part: figure.savefig(part, format="png", dpi=150))


def _drawn(support: Support, actions: Sequence[str]) -> Any:
    from matplotlib import pyplot

    from models.offline.regions import AXES, SHAPE
    from pipelines.reporting.figures import COLOURS

    window, base = AXES[0], AXES[1]
    counts = support.actions.reshape(*SHAPE, -1).sum(axis=tuple(range(2, len(SHAPE))))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.4))
    table = counts.sum(axis=-1)
    shown = np.where(table > 0, np.log10(np.maximum(table, 1)), np.nan)
    left.imshow(shown.T, origin="lower", cmap="Blues", vmin=-1, aspect="auto")
    for (i, j), count in np.ndenumerate(table):
        left.text(i, j, f"{count:,}" if count else "none", ha="center", va="center", fontsize=7)
    for axis, one, name in (
        (left.xaxis, window, "window, segments"),
        (left.yaxis, base, "base RTT, ms"),
    ):
        axis.set_ticks(range(one.bins), _ticks(one.edges))
        axis.set_label_text(name)
    left.grid(visible=False)
    left.set_title("decisions")
    by_window = counts.sum(axis=1)
    below = np.zeros(window.bins)
    for i, name in enumerate(actions):
        share = by_window[:, i] / np.maximum(by_window.sum(axis=1), 1)
        right.bar(range(window.bins), share, bottom=below, label=name,
                  color=COLOURS[i % len(COLOURS)])  # fmt: skip
        below += share
    right.set_xticks(range(window.bins), _ticks(window.edges))
    right.set_xlabel("window, segments")
    right.set_title("share of each action")
    right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    figure.tight_layout()
    return figure


def _ticks(edges: Sequence[float]) -> list[str]:
    inner = [f"{low:g}–{high:g}" for low, high in pairwise(edges)]
    return [f"≤ {edges[0]:g}", *inner, f"> {edges[-1]:g}"]
