"""Section "the data": how many logs were collected and kept, and how many windows they gave."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from pipelines.reporting import figures
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, code, details, figure, paragraph, table
from pipelines.reporting.sbd import names, rawdata


def kept(inputs: Inputs) -> str:
    """Table of the logs per data set and family, with the conditions that they span."""
    rows: list[list[Any]] = []
    found = rawdata.conditions(inputs)
    windows = _windows_per_family(inputs)
    for one in found:
        rows.append(
            [
                names.dataset(one["dataset"]),
                one["family"],
                one["sb"],
                one["nsb"],
                windows.get((one["dataset"], one["family"])),
                _span(one["rtt_ms"]),
                _span(one["rate_mbps"]),
                ", ".join(one["cc"]),
            ]
        )
    total = [sum(one[key] for one in found) for key in ("sb", "nsb")]
    rows.append(["all", "", *total, sum(windows.values()) or None, "", "", ""])
    columns = [
        Column("data set", number=False),
        Column("family", number=False),
        Column("SB", group="connections"),
        Column("NSB", group="connections"),
        Column("windows"),
        Column("base RTT, ms"),
        Column("rate, Mbit/s"),
        Column("congestion control", number=False),
    ]
    return table(columns, rows, "Connections kept, and the conditions of their two paths")


def validity(inputs: Inputs) -> str:
    """Table of how many runs were accepted, and why the others were not."""
    found = rawdata.validity(inputs)
    rows = [
        [one["campaign"], one["runs"], one["valid"], one["kept"], f"{100 * one['rate']:.1f} %"]
        for one in found
    ]
    columns = [
        Column("campaign", number=False),
        Column("runs"),
        Column("valid"),
        Column("logs kept"),
        Column("kept of runs"),
    ]
    text = table(columns, rows, "Validation by the emulator's own log of queues and drops")
    reasons: Counter[str] = Counter()
    for one in found:
        reasons.update(one["reasons"])
    why = [[code(r), rawdata.REASONS.get(r, ""), n] for r, n in reasons.most_common()]
    heads = [Column("reason", number=False), Column("meaning", number=False), Column("runs")]
    if why:
        text += details("Why runs were not kept", table(heads, why))
    return text


def boxes(inputs: Inputs) -> str:
    """Counterpart of the paper's Fig. 3: box plots of RTTs."""
    samples = rawdata.rtt_samples(inputs)
    if not samples:
        return paragraph("No logs of the four sites are kept yet.")
    logs = sum(read for _, _, read in samples.values())
    ratios = ", ".join(
        f"{names.dataset(site)} {np.median(first) / np.median(second):.1f}"
        for site, (first, second, _) in samples.items()
        if first.size and second.size
    )
    return figure(
        rawdata.rtt_boxes(samples),
        f"RTT samples per site as in the paper's Fig. 3, from {logs} logs (an even choice of both "
        "classes): Tukey whiskers, outliers omitted, diamonds at the means. Median of 4G over "
        f"WiFi: {ratios}; the paper has about 2.5 for Shanghai.",
    )


def windows(inputs: Inputs) -> str:
    """Windows per connection."""
    from matplotlib import pyplot

    per = inputs.features.group_by("source", "connection").agg(
        pl.len().alias("windows"), pl.col("dataset").first()
    )
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(7.2, 2.4))
        listed = names.datasets(per["dataset"].fill_null("").to_list())
        data = [
            per.filter(pl.col("dataset").fill_null("") == d)["windows"].to_numpy() for d in listed
        ]
        top = int(np.quantile(per["windows"].to_numpy(), 0.98)) + 1
        edges = np.arange(0.5, top + 1.5, max(1, top // 30))
        axis.hist(
            [np.clip(d, 0, top) for d in data],
            bins=edges.tolist(),
            stacked=True,
            label=[names.dataset(d) for d in listed],
            color=[figures.COLOURS[i % len(figures.COLOURS)] for i in range(len(listed))],
        )
        axis.set_xlabel(f"windows per connection (last bar: {top} and more)")
        axis.set_ylabel("connections")
        axis.legend(ncols=2)
        text = figures.svg(fig, "windows", "Histogram of windows per connection")
    values = per["windows"].to_numpy()
    return figure(
        text,
        f"{inputs.features.height} windows of {per.height} connections: median "
        f"{np.median(values):.0f}, from {values.min()} to {values.max()}. A window lasts 50 times "
        "the larger minimum RTT, so that near sites have more of them in the same time.",
    )


def without(inputs: Inputs) -> str:
    """Table of connections without any window, and of the reasons."""
    counts = inputs.feature_counts()
    lost = counts["connections_without_window"]
    if not lost["count"]:
        return paragraph(
            f"Each of the {counts['connections']} connections has at least one window."
        )
    rows = [[reason, number] for reason, number in lost["reasons"].items()]
    title = f"{lost['count']} of {counts['connections']} connections have no window"
    return table([Column("reason", number=False), Column("connections")], rows, title)


def _windows_per_family(inputs: Inputs) -> dict[tuple[str, str], int]:
    try:
        frame = inputs.features
    except Exception:  # without the table the column stays empty
        return {}
    if not {"dataset", "family"} <= set(frame.columns):
        return {}
    counted = frame.group_by("dataset", "family").len()
    return {(str(d), str(f)): int(n) for d, f, n in counted.iter_rows()}


def _span(limits: tuple[float, float] | None) -> str:
    return "" if limits is None else f"{limits[0]:.3g}–{limits[1]:.3g}"
