"""Counts and plots of the raw logs, for the report and for the datasheet of ``data/raw``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from pipelines.reporting import figures
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.sbd import names
from pipelines.reporting.sbd.paper import SITES

SAMPLE_PER_CLASS = 12
"""Logs per site and class that the box plots are made of: a few hundred thousand RTTs."""

REASONS = {
    "lateness": "host: the emulator was late by more than 1 ms at its 99th percentile",
    "steal": "host: more than 5 % of the CPU was taken by neighbours",
    "lost-events": "host: the probe lost events",
    "failed": "host: the run ended early",
    "idle": "a path's bottleneck was busy too little",
    "not-queued": "hardly any queue at the intended bottleneck",
    "queue-elsewhere": "packets queued elsewhere than the label says",
    "drops-elsewhere": "packets died elsewhere than the label says",
    "no-window": "too little congestion for one window",
    "below-alpha": "throughput below 0.8 of the group's best (the paper's validation)",
}
"""Known reasons of `data.lab.validate`; others are shown by their own names."""


def validity(inputs: Inputs) -> list[dict[str, Any]]:
    """Count runs, valid runs and reasons for the others, per campaign.

    Returns
    -------
    list of dict
        ``campaign, runs, valid, kept, rate, reasons`` (reason -> runs; a run may have several),
        ``first, last`` (UTC), ``kernels``, ``bytes`` of the logs kept.
    """
    rows = []
    for campaign, records in inputs.campaigns.items():
        reasons: Counter[str] = Counter()
        for record in records:
            reasons.update({str(r).split(":")[0] for r in record.get("reasons", ())})
        kept = inputs.labels.get(campaign, [])
        valid = len({r["id"] for r in records if r.get("valid")})
        if valid > len(kept):
            reasons["below-alpha"] += valid - len(kept)
        started = sorted(str(r["started"]) for r in records if r.get("started"))
        rows.append(
            {
                "campaign": campaign,
                "runs": len(records),
                "valid": valid,
                "kept": len(kept),
                "rate": len(kept) / len(records) if records else 0.0,
                "reasons": dict(reasons.most_common()),
                "first": started[0] if started else "",
                "last": started[-1] if started else "",
                "kernels": sorted({str(r["kernel"]) for r in records if r.get("kernel")}),
                "bytes": sum((inputs.raw / campaign / r["source"]).stat().st_size for r in kept),
            }
        )
    return rows


def conditions(inputs: Inputs) -> list[dict[str, Any]]:
    """Count the logs kept per data set and family, with their conditions.

    Returns
    -------
    list of dict
        ``dataset, family, sb, nsb, rtt_ms, rate_mbps`` (low and high of both paths), ``cc``
        (name -> logs), ``bytes``.
    """
    groups: dict[tuple[str, str], list[tuple[dict[str, str], Path]]] = {}
    for campaign, rows in inputs.labels.items():
        for row in rows:
            path = inputs.raw / campaign / row["source"]
            groups.setdefault((row["dataset"], row["family"]), []).append((row, path))
    found = []
    ranks = {name: i for i, name in enumerate(names.datasets({d for d, _ in groups}))}
    for dataset, family in sorted(groups, key=lambda key: (ranks[key[0]], key[1])):
        members = groups[dataset, family]
        rows = [row for row, _ in members]
        found.append(
            {
                "dataset": dataset,
                "family": family,
                "sb": sum(r["label"] == "SB" for r in rows),
                "nsb": sum(r["label"] == "NSB" for r in rows),
                "rtt_ms": _range(rows, "rtt_wifi_ms", "rtt_lte_ms"),
                "rate_mbps": _range(rows, "rate_wifi_mbps", "rate_lte_mbps"),
                "cc": dict(Counter(r["cc"] for r in rows).most_common()),
                "bytes": sum(path.stat().st_size for _, path in members),
            }
        )
    return found


def _range(rows: list[dict[str, str]], *columns: str) -> tuple[float, float] | None:
    values = [float(r[c]) for r in rows for c in columns if r.get(c)]
    return (min(values), max(values)) if values else None


def rtt_samples(inputs: Inputs) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64], int]]:
    """RTT samples of the four sites, in ms, from an even choice of logs of both classes.

    Returns
    -------
    dict
        Site -> (4G samples, WiFi samples, logs read).
    """
    from data.lab.compact import expand

    found = {}
    rows = [(c, r) for c, labelled in inputs.labels.items() for r in labelled]
    for site in SITES:
        samples: tuple[list[Any], list[Any]] = ([], [])
        read = 0
        for label in ("SB", "NSB"):
            mine = [(c, r) for c, r in rows if r["dataset"] == site and r["label"] == label]
            picks = np.unique(np.linspace(0, len(mine) - 1, SAMPLE_PER_CLASS).astype(int))
            for campaign, row in (mine[i] for i in picks if mine):
                try:
                    events, meta = expand(inputs.raw / campaign / row["source"])
                except (UserError, OSError, ValueError):
                    continue  # ingest reports what is wrong with a log; one less changes no box
                read += 1
                ports = {int(k): str(v["sport"]) for k, v in meta["subflows"].items()}
                for number, port in ports.items():
                    wanted = (events.subflow == number) & (events.kind == 0) & (events.rtt_us > 0)
                    wifi = port == str(row["wifi_sport"])
                    samples[1 if wifi else 0].append(events.rtt_us[wanted] / 1000.0)
        if read:
            found[site] = (np.concatenate(samples[0]), np.concatenate(samples[1]), read)
    return found


def rtt_boxes(
    samples: dict[str, tuple[NDArray[np.float64], NDArray[np.float64], int]],
    standalone: bool = False,
) -> str:
    """Draw box plots as in Fig. 3 as SVG: Tukey whiskers, no outliers, diamonds at the means."""
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    with figures.style():
        fig, axis = pyplot.subplots(figsize=(7.2, 2.9))
        for i, (cellular, wifi, _) in enumerate(samples.values()):
            for shift, values, colour in (
                (-0.19, cellular, figures.COLOURS[1]),
                (0.19, wifi, figures.COLOURS[0]),
            ):
                line = {"color": figures.INK, "linewidth": 0.9}
                axis.boxplot(
                    [values],
                    positions=[i + shift],
                    widths=0.3,
                    whis=1.5,
                    showfliers=False,
                    showmeans=True,
                    patch_artist=True,
                    boxprops={"facecolor": colour + "b0", "edgecolor": figures.INK},
                    medianprops={"color": figures.INK, "linewidth": 1.6},
                    meanprops={
                        "marker": "D",
                        "markerfacecolor": "none",
                        "markeredgecolor": figures.INK,
                        "markersize": 4,
                    },
                    whiskerprops=line,
                    capprops=line,
                    manage_ticks=False,
                )
        axis.set_xticks(range(len(samples)), [names.dataset(site) for site in samples])
        axis.grid(axis="x", visible=False)
        axis.set_ylabel("RTT, ms")
        axis.set_ylim(bottom=0)
        axis.legend(
            handles=[
                Patch(facecolor=figures.COLOURS[1] + "b0", label="subflow 1, 4G"),
                Patch(facecolor=figures.COLOURS[0] + "b0", label="subflow 2, WiFi"),
            ],
            loc="upper left",
        )
        return figures.svg(fig, "rtt-boxes", "Box plots of RTT per site and subflow", standalone)
