"""Render matplotlib figures as inline SVG that reads well on light and on dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from models.stats.intervals import Interval

INK = "#010203"
"""Stands for the page's own text colour, which an inline SVG inherits."""

COLOURS = ("#3b82c4", "#e07b39", "#3a9d6e", "#c0529b", "#8a7bd1", "#b08d2a", "#6b7f8c")
"""Distinguishable on white and on near-black; first two are WiFi and cellular, SB and NSB."""

_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#8888884d",
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "savefig.transparent": True,
}


@contextmanager
def style() -> Iterator[None]:
    """Use matplotlib without a display and in the report's style while the block runs."""
    import matplotlib

    matplotlib.use("Agg", force=True)
    from matplotlib import pyplot

    with matplotlib.rc_context(_STYLE):
        yield
    pyplot.close("all")


def bars(values: Sequence[Interval]) -> list[list[float]]:
    """Lengths of the error bars below and above the means; 0 if there is no limit."""
    ends: list[list[float]] = [[], []]
    for value in values:
        mean, low, high = value["mean"], value["low"], value["high"]
        ends[0].append(0.0 if mean is None or low is None else mean - low)
        ends[1].append(0.0 if mean is None or high is None else high - mean)
    return ends


def svg(figure: Figure, name: str, title: str, standalone: bool = False) -> str:
    """Render a figure.

    Parameters
    ----------
    figure : matplotlib Figure
        Drawn within `style`.
    name : str
        Unique within the page: prefix of all ids, and seed of matplotlib's own.
    title : str
        What the picture shows, for readers who hear the page.
    standalone : bool
        Whether it is a file of its own: the ink is then a colour that suits both backgrounds.
    """
    import matplotlib

    target = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(target, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = target.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid=")', rf"\1{name}-", text)
    text = re.sub(r'((?:href="|url\()#)', rf"\1{name}-", text)
    text = text.replace(INK, "#7a828c" if standalone else "currentColor")
    label = f' role="img" aria-label="{escape(title)}"'
    return text.replace("<svg", f"<svg{label}", 1) + ("\n" if standalone else "")
