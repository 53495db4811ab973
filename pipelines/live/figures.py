"""Draw the counterparts of SmartSBD's Figs. 8, 9 and 10 as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.live.summary import REFERENCE, interval, measured
from pipelines.live.tables import NAMES

Record = dict[str, Any]
COLOURS = {"smartsbd": "#3b82c4", "lia": "#e07b39", "mpcdg": "#8a5fbf", "reno": "#3a9d6e"}


def write(records: Sequence[Record], out: Path) -> list[str]:
    """Draw the figures for which there are records.

    Parameters
    ----------
    records : sequence of dict
        Lines of live.jsonl.
    out : Path
        Folder for ``fig8.svg``, ``fig8-greedy.svg``, ``fig9.svg``, ``fig10.svg``.

    Returns
    -------
    list of str
        Names of the files written.
    """
    import matplotlib

    matplotlib.use("Agg", force=True)
    valid = [r for r in records if r["kind"] == "run" and r["valid"]]
    written = []
    style: Any = {"svg.hashsalt": "cczoo", "svg.fonttype": "none", "font.size": 9,
             "axes.spines.top": False, "axes.spines.right": False}  # fmt: skip
    drawings: dict[str, tuple[str, Callable[[list[Record]], Any]]] = {
        "fig8.svg": ("live-nsb", _throughput),
        "fig8-greedy.svg": ("live-nsb-greedy", _throughput),
        "fig9.svg": ("live-sb", _friendliness),
        "fig10.svg": ("live-shift", _series),
    }
    for name, (scenario, draw) in drawings.items():
        runs = [r for r in valid if r["scenario"] == scenario]
        if not runs:
            continue
        with matplotlib.rc_context(style):
            figure = draw(runs)
            figure.savefig(out / name, metadata={"Date": None}, bbox_inches="tight")
        written.append(name)
    return written


def _axes(sites: Sequence[str], rows: int, height: float) -> Any:
    from matplotlib.figure import Figure

    columns = 1 if rows > 1 else len(sites)
    figure = Figure(figsize=(8.5, height))
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=rows == 1)


def _sites(runs: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(r["site"] for r in runs))


def _controls(runs: Sequence[Record]) -> list[str]:
    present = {r["cc"] for r in runs}
    return [cc for cc in NAMES if cc in present]


def _throughput(runs: list[Record]) -> Any:
    """Draw boxes over seconds and repeats, normalised to SmartSBD's mean at the site."""
    sites = _sites(runs)
    figure, axes = _axes(sites, 1, 2.9)
    for axis, site in zip(axes[0], sites, strict=True):
        mine = [r for r in runs if r["site"] == site]
        base = np.mean([measured(r) for r in mine if r["cc"] == REFERENCE])
        controls = _controls(mine)
        seconds = [
            np.concatenate(
                [
                    np.array(r["mptcp_mbps"][int(np.ceil(r["warmup_s"])) :]) / base
                    for r in mine
                    if r["cc"] == cc
                ]
            )
            for cc in controls
        ]
        _boxes(axis, seconds, controls)
        axis.set_title(site)
    axes[0][0].set_ylabel("MPTCP throughput / SmartSBD's mean")
    axes[0][0].set_ylim(bottom=0)
    return figure


def _boxes(axis: Any, values: Sequence[Any], controls: Sequence[str]) -> None:
    boxes = axis.boxplot(
        values,
        tick_labels=[NAMES[cc] for cc in controls],
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black",
                   "markersize": 5},
        medianprops={"color": "black"},
        widths=0.6,
    )  # fmt: skip
    for box, cc in zip(boxes["boxes"], controls, strict=True):
        box.set_facecolor(COLOURS[cc])


def _friendliness(runs: list[Record]) -> Any:
    """Draw the means of MPTCP and of the competing TCP, with bars of 95 % over repeats."""
    sites = _sites(runs)
    figure, axes = _axes(sites, 1, 2.9)
    for axis, site in zip(axes[0], sites, strict=True):
        controls = _controls([r for r in runs if r["site"] == site])
        for shift, series, alpha in ((-0.2, "mptcp_mbps", 1.0), (0.2, "rival_mbps", 0.4)):
            for place, cc in enumerate(controls):
                mine = [r for r in runs if r["site"] == site and r["cc"] == cc]
                found = interval([measured(r, series) for r in mine])
                half = 0.0 if found["high"] is None else found["high"] - found["mean"]
                axis.bar(place + shift, found["mean"], 0.38, yerr=half, color=COLOURS[cc],
                         alpha=alpha, ecolor="black", capsize=3)  # fmt: skip
        axis.set_xticks(range(len(controls)), [NAMES[cc] for cc in controls])
        axis.set_title(site)
    axes[0][0].set_ylabel("Mbps (dark: MPTCP, light: the one TCP)")
    return figure


def _series(runs: list[Record]) -> Any:
    """Draw the mean over repeats of each second, a row per site; dotted lines are shifts."""
    sites = _sites(runs)
    figure, axes = _axes(sites, len(sites), 2.1 * len(sites))
    for axis, site in zip(axes[:, 0], sites, strict=True):
        mine = [r for r in runs if r["site"] == site]
        for cc in _controls(mine):
            table = np.array([r["mptcp_mbps"] for r in mine if r["cc"] == cc])
            axis.plot(np.arange(table.shape[1]) + 0.5, table.mean(axis=0), color=COLOURS[cc],
                      label=NAMES[cc], linewidth=1.2)  # fmt: skip
        for phase in mine[0]["phases"][1:]:
            axis.axvline(phase["from_s"], color="black", linestyle=":", linewidth=1)
        axis.set_title(f"{site}: shared, separate, shared")
        axis.set_ylabel("MPTCP Mbps")
        axis.set_ylim(bottom=0)
    axes[0, 0].legend(frameon=False, ncols=3)
    axes[-1, 0].set_xlabel("s since the connection began")
    figure.tight_layout()
    return figure
