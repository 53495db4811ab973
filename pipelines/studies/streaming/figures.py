"""Draw what schedulers do to a stream, as differences to minRTT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.reporting.figures import COLOURS, bars, style, svg
from pipelines.studies.streaming.kept import Row

DRAWN = {
    "stalls": "stalls",
    "psnr_db": "PSNR (dB)",
    "goodput_mbps": "goodput (Mbit/s)",
    "reorder_kb": "out of order (kB)",
}
TITLES = {"generated": "generated pairs", "measured": "measured pairs"}


def drawn(rows: Sequence[Row], links: str, standalone: bool = True) -> tuple[str, str]:
    """SVG and caption of a figure: a panel for each metric, a colour for each control."""
    mine = [row for row in rows if row.links == links and row.scheduler != "minrtt"]
    title = f"More than minRTT, {TITLES[links]}, 95 % intervals"
    with style():
        picture = svg(_panels(mine), f"streaming-{links}", title, standalone)
    return picture, f"{title}; {mine[0].pairs} pairs of WiFi and cellular links, paired."


def _panels(rows: Sequence[Row]) -> Any:
    from matplotlib import pyplot

    controls = list(dict.fromkeys(row.cc for row in rows))
    schedulers = list(dict.fromkeys(row.scheduler for row in rows))
    figure, axes = pyplot.subplots(1, len(DRAWN), figsize=(11.0, 2.8))
    for axis, (metric, title) in zip(axes, DRAWN.items(), strict=True):
        for place, cc in enumerate(controls):
            found = [row.more[metric] for row in rows if row.cc == cc]
            ends = bars([{"mean": v.mean, "low": v.low, "high": v.high} for v in found])
            at = [i + 0.3 * (place - 0.5) for i in range(len(found))]
            axis.errorbar(at, [v.mean for v in found], ends, fmt="o", markersize=4, capsize=3,
                          color=COLOURS[place], label=cc)  # fmt: skip
        axis.axhline(0, color="#88888899", linewidth=0.8)
        axis.set_xticks(range(len(schedulers)), schedulers, rotation=20)
        axis.set_title(title)
    axes[0].legend()
    figure.tight_layout()
    return figure
