"""Write the summary of driven runs as Markdown, as docs/drive.md has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.drive.summary import LATENCIES, RECEIVED
from pipelines.live.tables import table

FIGURES = (
    ("goodput_mbps", "goodput, Mbps", 1, 1.0),
    ("background_mbps", "background, Mbps", 1, 1.0),
    ("rtt_ms", "RTT, ms", 1, 1.0),
    ("rtt_p95_ms", "95th percentile", 1, 1.0),
    ("retransmit_rate", "retransmitted, %", 2, 100.0),
    ("fct_ms", "completion, ms", 0, 1.0),
    ("jain", "Jain's index", 3, 1.0),
)


def markdown(summary: Mapping[str, Any]) -> str:
    """Make tables of all scenarios in the summary, then of the agent's decisions."""
    parts = [
        f"### {scenario}\n\n{_scenario(sites)}" for scenario, sites in summary["scenarios"].items()
    ]
    if (decisions := _decisions(summary["scenarios"])) is not None:
        parts.append(f"### Decisions\n\n{decisions}")
    if (receivers := _receivers(summary["scenarios"])) is not None:
        parts.append(f"### Receivers\n\n{receivers}")
    return "\n\n".join(parts) + "\n"


def _scenario(sites: Mapping[str, Any]) -> str:
    all_of_them = [found for controls in sites.values() for found in controls.values()]
    figures = [one for one in FIGURES if any(one[0] in found for found in all_of_them)]
    head = ["setting", "control", "runs", *(title for _, title, _, _ in figures)]
    rows = []
    for site, controls in sites.items():
        for control, found in controls.items():
            runs = f"{found['runs']}" + (f" (+{found['invalid']})" if found["invalid"] else "")
            cells = [_cell(found, name, digits, unit) for name, _, digits, unit in figures]
            rows.append([site, control, runs, *cells])
    return table(head, rows)


def _cell(found: Mapping[str, Any], name: str, digits: int, unit: float) -> str:
    one = found.get(name, {"mean": None})
    if one["mean"] is None:
        return ""
    text = f"{unit * one['mean']:.{digits}f}"
    if one["low"] is not None:
        text += f" ± {unit * (one['high'] - one['mean']):.{digits}f}"
    simulated = found.get("simulated", {}).get(name)
    return text if simulated is None else f"{text} / {unit * simulated:.{digits}f}"


def _decisions(scenarios: Mapping[str, Any]) -> str | None:
    head = ["scenario", "setting", "control", "decisions", "late", "fallbacks",
            "question → answer, µs", "interval's end → ordered, µs", "→ applied, µs",
            "in the kernel, ns", "ns an ACK"]  # fmt: skip
    rows = []
    for scenario, sites in scenarios.items():
        for site, controls in sites.items():
            for control, found in controls.items():
                if "agent" not in found:
                    continue
                one = found["agent"]
                spans = [_span(one.get(name)) for name in LATENCIES]
                counts = [str(one[name]) for name in ("decisions", "late", "fallbacks")]
                cost = f"{one['ns_per_ack']:.0f}"
                rows.append([scenario, site, control, *counts, *spans, cost])
    return table(head, rows) if rows else None


def _receivers(scenarios: Mapping[str, Any]) -> str | None:
    head = ["scenario", "setting", "control", "ACKs rewritten", "choices of k",
            "ns a segment in", "ns an ACK out"]  # fmt: skip
    rows = []
    for scenario, sites in scenarios.items():
        for site, controls in sites.items():
            for control, found in controls.items():
                if one := found.get("receiver"):
                    cells = [f"{one[name] or 0:.0f}" for name in RECEIVED]
                    rows.append([scenario, site, control, *cells])
    return table(head, rows) if rows else None


def _span(found: Mapping[str, Any] | None) -> str:
    if not found or found["p50"] is None:
        return ""
    return f"{found['p50']:.0f}, {found['p99']:.0f}"
