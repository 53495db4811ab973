"""A run leaves its log, and a record that says what ran and whether it counts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.lab import compact, figures, probes, topology, validate
from data.lab.measure import WARMUP_S
from data.lab.process import LabError
from data.lab.scenario import Scenario


@dataclass(frozen=True)
class RunResult:
    """What one run left: the log's path (None if it failed) and the record for campaign.jsonl."""

    path: Path | None
    valid: bool
    reasons: tuple[str, ...]
    record: dict[str, Any] = field(default_factory=dict)


def describe(scenario: Scenario) -> dict[str, Any]:
    """Scenario in the few numbers that stand in labels and records."""
    flows = [flow.over for flow in scenario.background]
    found: dict[str, Any] = {
        "label": scenario.label,
        "dataset": scenario.dataset,
        "family": scenario.family,
        "case": scenario.case,
        "cc": scenario.cc,
        "duration_s": scenario.duration_s,
        "cross_traffic": "+".join(sorted(set(flows))) or "none",
        "first": scenario.first,
    }
    for path in scenario.data_paths:
        queue = scenario.stages[getattr(scenario.bottleneck, path)].limit_bytes
        found |= {
            f"rtt_{path}_ms": round(scenario.base_rtt_ms(path), 3),
            f"rate_{path}_mbps": scenario.rate_mbps(path),
            f"queue_{path}_bytes": queue,
        }
    return found


def finish(
    scenario: Scenario,
    record: dict[str, Any],
    traffic: dict[str, Any],
    stats: dict[str, Any],
    steal: float,
    log: tuple[compact.Events, dict[str, Any], bytes],
    out_dir: Path,
) -> RunResult:
    """Judge what was measured, write the log and complete the record.

    Raises
    ------
    LabError
        When a path has no subflow in the log.
    """
    events, probed, text = log
    count, flows = validate.windows(events, len(scenario.data_paths))
    lateness = float(stats["lateness_us"]["p99"])
    reasons = validate.host_reasons(steal, lateness, int(probed["lost_events"]))
    active_s = float(traffic["duration_s"]) + (WARMUP_S if scenario.background else 0.0)
    where, account = validate.bottleneck(scenario, topology.paths(scenario), stats, active_s)
    if scenario.transport == "mptcp":
        reasons += where
        if count == 0:
            reasons.append("no-window")
    number = _numbers(scenario, probed["subflows"], traffic.pop("sports"))
    sports = {path: probed["subflows"].get(n, {}).get("sport") for path, n in number.items()}
    bottlenecks = _bottlenecks(scenario, number)
    meta = {
        "token": probed["token"],
        "kernel": record["kernel"],
        "cc": record["cc"],
        "scenario": scenario.case or scenario.label or "tcp",
        "command": " ".join(["cczoo", *sys.argv[1:]]) if len(sys.argv) > 1 else "cczoo lab",
        "subflows": {n: {k: v for k, v in s.items() if k != "sfid"}
                     for n, s in probed["subflows"].items()},
        "label": scenario.label,
        "wifi_sport": sports["wifi"],
        **bottlenecks,
    }  # fmt: skip
    path, size = probes.write(record["probe"], out_dir, record["id"], events, text, meta)
    record |= {
        "valid": not reasons,
        "reasons": reasons,
        "bytes": size,
        "events": len(events.time_us),
        "windows": count,
        "wifi_sport": sports["wifi"],
        **bottlenecks,
        "steal": round(steal, 4),
        "emulated_s": round(float(stats["duration_s"]), 3),
        "lateness_us": stats["lateness_us"],
        "throughput_mbps": {p: flows[n]["throughput_mbps"] for p, n in number.items()},
        "subflows": {p: flows[n] for p, n in number.items()},
        "figures": figures.of(compact.series(events)) | probed["counted"],
        "bottleneck": account,
        "traffic": {k: v for k, v in traffic.items() if k != "event"},
    }
    if deciding := {
        name: {what: stage[f"policy_{what}"] for what in ("decisions", "drops")}
        for name, stage in stats["stages"].items()
        if stage.get("policy_decisions")
    }:
        record["queue_policies"] = deciding
    return RunResult(path, not reasons, tuple(reasons), record)


def _numbers(
    scenario: Scenario, subflows: Mapping[str, Any], sports: Mapping[str, int] | None
) -> dict[str, str]:
    """Number of each path's subflow.

    The kernel numbers subflows from the first; of two the second is the other interface's. Three
    are known apart by the source ports of their sockets alone.
    """
    if len(scenario.data_paths) < 3:
        order = ["wifi", "lte"] if scenario.first == "wifi" else ["lte", "wifi"]
        return {path: str(order.index(path) + 1) for path in scenario.data_paths}
    by_sport = {about["sport"]: number for number, about in subflows.items()}
    found: dict[str, str] = {}
    for path in scenario.data_paths:
        sport = (sports or {}).get(topology.ADDRESS[path])
        if sport not in by_sport:
            raise LabError(f"no subflow over {path} was recorded")
        found[path] = by_sport[sport]
    return found


def _bottlenecks(scenario: Scenario, number: Mapping[str, str]) -> dict[str, str]:
    """Which subflows share: the limiting stage of each, in the order of their numbers."""
    if len(number) < 3:
        return {}
    paths = sorted(number, key=lambda path: int(number[path]))
    return {"bottlenecks": ",".join(getattr(scenario.bottleneck, path) for path in paths)}


def summary(result: RunResult) -> dict[str, Any]:
    """Short form of a result for people and scripts."""
    keys = ["id", "label", "probe", "valid", "reasons", "error", "bytes", "windows", "steal"]
    keys += ["throughput_mbps", "wifi_sport"]
    short = {key: result.record[key] for key in keys if key in result.record}
    if result.path is not None:
        short["path"] = str(result.path)
        short["lateness_p99_us"] = result.record["lateness_us"]["p99"]
    return short
