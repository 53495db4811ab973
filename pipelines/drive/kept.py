"""Keeps of a driven run what is compared: the lab's record in a few figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from data.lab.validate import HOST_REASONS
from pipelines.drive.tasks import Task


def kept_of(task: Task, record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a lab's record is kept; only the host decides whether it counts."""
    figures = record.get("figures") or {}
    # A stage that never queued is an agent's success, not a reason against the run.
    reasons = [r for r in record["reasons"] if r in HOST_REASONS or r == "failed"]
    kept: dict[str, Any] = {
        "scenario": task.scenario,
        "site": task.site,
        "control": task.control,
        "repeat": task.repeat,
        "seed": task.seed,
        "valid": not reasons and bool(figures),
        "reasons": reasons or ([] if figures else ["no-figures"]),
        "drawn": task.drawn.model_dump(exclude_defaults=True, mode="json"),
    }
    for name in (
        "error",
        "kernel",
        "started",
        "load",
        "steal",
        "lateness_us",
        "emulated_s",
        "queue_policies",
    ):
        if name in record:
            kept[name] = record[name]
    traffic = record.get("traffic") or {}
    if task.drawn.size_bytes:
        return kept | _completed(kept, traffic)
    if not figures:
        return kept
    flows = figures["subflows"].values()
    total = sum(flow["goodput_mbps"] for flow in flows)
    # Over all ACKs, as the simulator has it: a path with more of them counts for more.
    own, weighted = total, sum(flow["rtt_ms"] * flow["goodput_mbps"] for flow in flows)
    segments = sum(flow["goodput_mbps"] for flow in flows) * 1e6 * task.drawn.duration_s / 8 / 1448
    if any(flow.cc == "same" for flow in task.drawn.background):
        received = traffic["per_second"]["background"]
        others = [8e-6 * sum(bins) / task.drawn.duration_s for bins in received]
        rates = np.array([total, *others])
        kept["beside_mbps"] = [round(rate, 4) for rate in others]
        kept["jain"] = round(float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())), 4)
        total = float(rates.sum())
    elif task.drawn.background:
        seconds = traffic["per_second"]["background"]
        kept["background_mbps"] = round(sum(8e-6 * float(np.mean(b)) for b in seconds), 4)
    return kept | {
        "goodput_mbps": round(total, 4),
        "rtt_ms": round(weighted / max(own, 1e-9), 4),
        "rtt_p95_ms": figures["rtt_p95_ms"],
        "retransmit_rate": round(figures["retransmits"] / max(1.0, segments), 6),
        "subflows": figures["subflows"],
    }


def _completed(kept: Mapping[str, Any], traffic: Mapping[str, Any]) -> dict[str, Any]:
    """How long a finite upload took, from the first SYN to the last byte's arrival."""
    took_s = traffic.get("completed_s")
    # A path that a short upload never used has no figures.
    spoilt = [reason for reason in kept["reasons"] if reason != "no-figures"]
    if took_s is None:
        return {"valid": False, "reasons": spoilt or ["not-completed"]}
    return {
        "valid": not spoilt,
        "reasons": spoilt,
        "fct_ms": round(1e3 * took_s, 3),
    }
