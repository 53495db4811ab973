"""Draw the figures of the page of comparisons as SVG files beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.files import write_text
from data.netsim.cc import CONTROLS
from data.netsim.runner import intervals
from pipelines.reporting.figures import COLOURS, style, svg
from pipelines.studies.papers import timelines

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from models.closedloop import Player
    from pipelines.studies.papers.runs import Results

SHARES_S = 2.0
"""Width of a bin of the shares over time, in seconds."""


def write(
    sections: dict[str, dict[str, Scenario]],
    results: dict[str, Results],
    folder: Path,
    seeds: int,
    agents: Mapping[str, Player],
) -> dict[str, list[tuple[str, str]]]:
    """Draw the figures of those sections that have some.

    Returns
    -------
    dict
        Scenario -> (path relative to the folder's parent, caption) of each.
    """
    written: dict[str, list[tuple[str, str]]] = {}

    def keep(scenario: str, name: str, caption: str, draw: Callable[[], Any]) -> None:
        with style():
            text = svg(draw(), name, caption, standalone=True)
        write_text(folder / f"{name}.svg", text)
        written.setdefault(scenario, []).append((f"{folder.name}/{name}.svg", caption))

    for name, (draw, caption) in FIGURES.items():
        if name in sections:
            keep(name, name, caption, partial(draw, sections[name], results[name], seeds))
    for name, (label, step_s, who, caption) in timelines.SHOWN.items():
        if name in sections and who[0] in agents:
            there = {one: agents.get(one, one) for one in who if one in agents or one in CONTROLS}
            spec = sections[name][label]
            keep(name, f"{name}-time", caption, partial(_over_time, spec, there, seeds, step_s))
    return written


def _over_time(spec: Scenario, who: Mapping[str, Player | str], seeds: int, step_s: float) -> Any:
    figure, axes = _axes(2)
    timelines.drawn(axes, spec, who, seeds, step_s)
    figure.tight_layout()
    return figure


def _axes(count: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * count, 2.8))
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _errors(runs: list[dict[str, float]], metric: str) -> tuple[float, float]:
    value = intervals(runs)[metric]
    return value["mean"], value["hi"] - value["mean"]


def _sweep(variants: dict[str, Scenario], results: Results, _: int) -> Any:
    """Draw goodput, delay and loss over k."""
    figure, axes = _axes(3)
    labels = [label for label in variants if label.startswith("k ") and "," not in label]
    k = [float(label.split()[1]) for label in labels]
    shown = {"goodput_mbps": "goodput (Mbit/s)", "queue_delay_ms": "queueing delay (ms)",
             "loss_rate": "loss rate"}  # fmt: skip
    for axis, (metric, title) in zip(axes, shown.items(), strict=True):
        values = [_errors(results[label, "nuwa"], metric) for label in labels]
        axis.errorbar(k, [v[0] for v in values], [v[1] for v in values], color=COLOURS[0],
                      marker="o", capsize=3)  # fmt: skip
        axis.set(xlabel="k", ylabel=title)
    figure.tight_layout()
    return figure


def _shares(variants: dict[str, Scenario], _: Results, seeds: int) -> Any:
    """Draw the goodput of each flow over time, as the mean of the seeds."""
    from data.netsim.metrics import shares

    spec = variants[""]
    runs = [shares(spec, "nuwa", seed, SHARES_S) for seed in range(seeds)]
    figure, (axis,) = _axes(1)
    figure.set_size_inches(8.0, 2.8)
    for place, flow in enumerate(runs[0]):
        series = np.mean([run[flow] for run in runs], axis=0)
        times = SHARES_S * (np.arange(len(series)) + 0.5)
        name = flow.replace("first", "Nuwa ").replace("cubic", "CUBIC ")
        axis.plot(times, series, color=COLOURS[place], label=name)
    axis.set(xlabel="time (s)", ylabel="goodput (Mbit/s)")
    axis.legend(ncols=4)
    return figure


def _buffers(variants: dict[str, Scenario], results: Results, _: int) -> Any:
    """Draw the goodput over the queue's length."""
    figure, (axis,) = _axes(1)
    figure.set_size_inches(6.0, 3.2)
    sizes = [int(label.split()[0]) for label in variants]
    for place, cc in enumerate(("bbr", "cubic", "lia", "balia", "olia", "westwood", "wvegas")):
        values = [_errors(results[label, cc], "goodput_mbps") for label in variants]
        axis.errorbar(sizes, [v[0] for v in values], [v[1] for v in values], label=cc,
                      color=COLOURS[place], marker="o", capsize=2)  # fmt: skip
    axis.set(xlabel="queue (packets)", ylabel="goodput (Mbit/s)")
    axis.legend(ncols=2)
    return figure


def _queues(variants: dict[str, Scenario], results: Results, _: int) -> Any:
    """Draw goodput, RTT and the two deviations behind each queue discipline."""
    figure, axes = _axes(4)
    figure.set_size_inches(12.0, 2.8)
    labels = [label for label in variants if "," not in label]
    shown = {
        "goodput_mbps": "goodput (Mbit/s)",
        "rtt_ms": "RTT (ms)",
        "cwnd_mad": "MAD of the window (segments)",
        "queue_mad": "MAD of the queue (packets)",
    }
    for axis, (metric, title) in zip(axes, shown.items(), strict=True):
        for place, cc in enumerate(("bbr", "reno", "cubic")):
            values = [_errors(results[label, cc], metric) for label in labels]
            axis.bar(np.arange(len(labels)) + 0.27 * (place - 1), [v[0] for v in values], 0.25,
                     yerr=[v[1] for v in values], color=COLOURS[place], label=cc)  # fmt: skip
        axis.set_xticks(range(len(labels)), labels)
        axis.set_ylabel(title)
    axes[0].legend()
    figure.tight_layout()
    return figure


def _intervals_of_time(variants: dict[str, Scenario], _: Results, seeds: int) -> Any:
    """Draw node B's goodput in intervals of 10 s, as bars for three controls."""
    from data.netsim.metrics import shares

    figure, axes = _axes(2)
    figure.set_size_inches(10.0, 2.8)
    for axis, label in zip(axes, ("", "two links"), strict=True):
        for place, cc in enumerate(("mpcdg", "lia", "reno")):
            runs = [shares(variants[label], cc, seed, 10.0)["mptcp"] for seed in range(seeds)]
            means = np.mean(runs, axis=0)
            error = 1.96 * np.std(runs, axis=0) / len(runs) ** 0.5
            ends = 10 * (np.arange(len(means)) + 1)
            axis.bar(ends + 2.7 * (place - 1), means, 2.5, yerr=error, color=COLOURS[place],
                     label="uncoupled" if cc == "reno" else cc)  # fmt: skip
        axis.set(xlabel="end of the interval (s)", ylabel="node B (Mbit/s)")
        axis.set_title(label or "as in Table 1")
    axes[0].legend()
    figure.tight_layout()
    return figure


FIGURES: dict[str, tuple[Any, str]] = {
    "macc-fig4": (_queues, "MA-CC's Fig. 4 for three controls behind four queue disciplines"),
    "mpcdg-table1": (_intervals_of_time, "MP-CDG's Table 2: node B over time, means over seeds"),
    "nuwa-fig8": (_shares, "Nuwa's Fig. 8: goodput of each flow, means over seeds"),
    "nuwa-fig9": (_sweep, "Nuwa's Fig. 9: goodput, delay and loss over k"),
    "tcco-fig11": (_buffers, "TCCO's Fig. 11(a): goodput over the bottleneck's queue"),
}
"""Scenario -> (function that draws it, caption)."""
