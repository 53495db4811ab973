"""Sum up driven runs: figures of each control in each setting, kernel and simulator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from data.student import quantile
from pipelines.drive.simulated import FIGURES

LATENCIES = ("engine_us", "written_us", "applied_us", "kernel_ns")
RECEIVED = ("rewritten", "decisions", "ingress_ns", "egress_ns")
COUNTS = ("decisions", "late", "engines_lost", "fallbacks", "returns")


def summarise(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means with 95 % intervals over repeats.

    Parameters
    ----------
    records : sequence of mapping
        As `pipelines.drive.runs.carry_out` makes them.

    Returns
    -------
    dict
        ``scenarios``: scenario -> site -> control -> `FIGURES`, each with ``mean``, ``low`` and
        ``high``; ``runs`` and ``invalid``; ``simulated`` with the means of the same runs; and of
        an agent ``agent``: its counts, latencies and ``ns_per_ack``, means over runs; of a
        receiver ``receiver``: `RECEIVED`, means over runs.
    """
    scenarios: dict[str, Any] = {}
    for scenario, site, control in dict.fromkeys(
        (r["scenario"], r["site"], r["control"]) for r in records
    ):
        mine = [
            r for r in records
            if (r["scenario"], r["site"], r["control"]) == (scenario, site, control)
        ]  # fmt: skip
        sites = scenarios.setdefault(scenario, {})
        sites.setdefault(site, {})[control] = _control(mine)
    return {"scenarios": scenarios}


def _control(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    valid = [r for r in records if r["valid"]]
    found: dict[str, Any] = {"runs": len(valid), "invalid": len(records) - len(valid)}
    there = [name for name in FIGURES if any(name in r for r in valid)]
    found |= {name: interval([r[name] for r in valid]) for name in there}
    if valid and all("background_mbps" in r for r in valid):
        found["background_mbps"] = interval([r["background_mbps"] for r in valid])
    pairs = [r["simulated"] for r in valid if r.get("simulated")]
    if pairs:
        found["simulated"] = {name: _mean(p[name] for p in pairs if name in p) for name in there}
    agents = [r["agent"] | {"ns_per_ack": r["ns_per_ack"]} for r in valid if "agent" in r]
    if agents:
        found["agent"] = {
            **{name: sum(a[name] for a in agents) for name in COUNTS},
            "ns_per_ack": _mean(a["ns_per_ack"] for a in agents),
            **{
                name: {p: _mean(a[name][p] for a in agents if name in a) for p in ("p50", "p99")}
                for name in LATENCIES
                if any(name in a for a in agents)
            },
        }
    receivers = [r["receiver"] for r in valid if "receiver" in r]
    if receivers:
        found["receiver"] = {
            name: _mean(one[name] for one in receivers if name in one) for name in RECEIVED
        }
    return found


def interval(values: Sequence[float]) -> dict[str, float | None]:
    """Mean of repeats, and the limits of its 95 % interval by Student's t."""
    if not values:
        return {"mean": None, "low": None, "high": None}
    mean = float(np.mean(values))
    if len(values) < 2:
        return {"mean": mean, "low": None, "high": None}
    half = quantile(0.95, len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _mean(values: Iterable[float]) -> float | None:
    there = list(values)
    return round(float(np.mean(there)), 6) if there else None
