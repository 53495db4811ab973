"""Section "what the classifier sees": two connections and the alignment of two series."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from data.store import iter_connections
from features.params import SbdParams
from features.windows import Window
from features.windows import windows as cut
from pipelines.reporting import figures
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import figure
from pipelines.reporting.sbd import names
from pipelines.reporting.sbd.paper import SITES

SHOWN_S = 8.0
CORRELATION = "Corr"
Example = tuple[dict[str, Any], Any, list[Window]]


def choose(inputs: Inputs) -> dict[str, Example]:
    """Choose an SB and an NSB connection of one site: those with their class's median correlation.

    Raises
    ------
    MissingInput
        When there are no events or no features.
    """
    frame = inputs.features
    if not (inputs.events / "connections.parquet").is_file():
        raise MissingInput(inputs.events, f"cczoo ingest data/raw --out {inputs.events}")
    site = next((s for s in SITES if _both(frame.filter(pl.col("dataset") == s))), None)
    pool = frame if site is None else frame.filter(pl.col("dataset") == site)
    picked = {}
    for label in ("SB", "NSB"):
        mine = pool.filter((pl.col("label") == label) & (pl.col("window") == 0))
        if mine.is_empty():
            continue
        by = [CORRELATION] if CORRELATION in mine.columns else []
        mine = mine.sort([*by, "connection"])
        picked[str(mine["connection"][mine.height // 2])] = label
    found = {}
    for row, events in iter_connections(inputs.events, list(picked)):
        found[picked[row["connection"]]] = (row, events, cut(row, events, SbdParams())[0])
    return {label: found[label] for label in ("SB", "NSB") if label in found}


def examples(inputs: Inputs) -> str:
    """Draw both figures, of the same two connections."""
    chosen = choose(inputs)
    return pair(chosen) + alignment(chosen)


def pair(chosen: dict[str, Example]) -> str:
    """Draw the RTTs of an SB and of an NSB connection side by side."""
    from matplotlib import pyplot

    with figures.style():
        fig, axes = pyplot.subplots(
            1, len(chosen), figsize=(9.6, 3.0), sharey=True, squeeze=False, layout="constrained"
        )
        for axis, (label, (_row, _, windows)) in zip(axes[0], chosen.items(), strict=True):
            start = windows[0].start_us
            for i, name in enumerate(("WiFi", "4G")):
                times = np.concatenate([w.traces[i].rtt.time_us for w in windows])
                values = np.concatenate([w.traces[i].rtt.value for w in windows])
                shown = times - start < SHOWN_S * 1e6
                # A polyline per ACK would weigh megabytes: keep what the eye can resolve.
                every = max(1, int(shown.sum()) // 700)
                axis.plot(
                    (times[shown][::every] - start) / 1e6,
                    values[shown][::every] / 1e3,
                    color=figures.COLOURS[i],
                    linewidth=1.0,
                    label=name,
                )
            for w in windows[:: 2 if len(windows) > 1 else 1]:
                a, b = (w.start_us - start) / 1e6, (w.end_us - start) / 1e6
                if a < SHOWN_S:
                    axis.axvspan(a, min(b, SHOWN_S), color="#888888", alpha=0.12, linewidth=0)
            shared = "shared" if label == "SB" else "separate"
            axis.set_title(f"{label}: {shared} bottleneck")
            axis.set_xlabel("seconds since both subflows were congested")
        axes[0][0].set_ylabel("RTT, ms")
        axes[0][0].set_ylim(bottom=0)
        axes[0][0].legend(loc="lower right", ncols=2)
        text = figures.svg(fig, "rtt-pair", "RTT of an SB and an NSB connection")
    rows = [row for row, _, _ in chosen.values()]
    sources = " and ".join(row["source"] for row in rows)
    site = names.dataset(rows[0]["dataset"] or "")
    return figure(
        text,
        f"RTT of the two subflows, {site}: {sources}, each of median correlation in its class. "
        "Shaded: every other window. With a shared bottleneck both RTTs rise and fall with one "
        "queue; with separate ones each follows its own.",
        wide=True,
    )


def alignment(chosen: dict[str, Example]) -> str:
    """Draw the DTW alignment of the SB connection's first window."""
    from matplotlib import pyplot
    from tslearn.metrics import dtw_path

    label = "SB" if "SB" in chosen else next(iter(chosen))
    row, _, windows = chosen[label]
    window = windows[0]
    wifi, cellular = window.rtt_us / 1e3
    path, distance = dtw_path(wifi, cellular)
    euclidean = float(np.sqrt(((wifi - cellular) ** 2).sum()))
    time_s = np.arange(wifi.size) * window.step_us / 1e6
    gap = max(0.0, float(wifi.max() - cellular.min())) + 0.35 * float(np.ptp(wifi))
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(9.6, 3.0))
        for i, j in path[:: max(1, len(path) // 110)]:
            axis.plot(
                [time_s[i], time_s[j]],
                [wifi[i], cellular[j] + gap],
                color="#888888",
                linewidth=0.5,
                alpha=0.7,
            )
        axis.plot(time_s, wifi, color=figures.COLOURS[0], label="WiFi")
        axis.plot(
            time_s, cellular + gap, color=figures.COLOURS[1], label=f"4G, moved up by {gap:.0f} ms"
        )
        axis.set_xlabel("seconds since the window's start")
        axis.set_ylabel("RTT, ms")
        axis.legend(loc="upper right", ncols=2)
        top = axis.get_ylim()[1]
        axis.set_ylim(top=top + 0.18 * (top - axis.get_ylim()[0]))
        text = figures.svg(fig, "dtw", "DTW alignment of two RTT series")
    return figure(
        text,
        f"Dynamic time warping of one {label} window of {row['source']}: {wifi.size} points, one "
        f"per {window.step_us / 1e3:.1f} ms. Grey lines join points that were aligned (tslearn's "
        f"dtw_path; one in {max(1, len(path) // 110)} is shown). Distance {distance:.0f} ms; "
        f"without alignment (Euclidean) {euclidean:.0f} ms.",
        wide=True,
    )


def _both(frame: pl.DataFrame) -> bool:
    return {"SB", "NSB"} <= set(frame["label"].unique().to_list())
