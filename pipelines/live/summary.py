"""Sum up live runs: throughput, friendliness, delays of detection, and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from data.student import quantile
from pipelines.live.record import label_class

Record = dict[str, Any]
CONFIDENCE = 0.95
REFERENCE = "smartsbd"


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Mean over repeats with Student's 95 % interval.

    Returns
    -------
    dict
        ``mean``, ``low``, ``high`` (None for fewer than two values), ``n``.
    """
    x = np.asarray(values, dtype=np.float64)
    if not x.size:
        return {"mean": None, "low": None, "high": None, "n": 0}
    mean = float(x.mean())
    if x.size < 2:
        return {"mean": _round(mean), "low": None, "high": None, "n": 1}
    half = quantile(CONFIDENCE, x.size - 1) * float(x.std(ddof=1)) / x.size**0.5
    return {"mean": _round(mean), "low": _round(mean - half), "high": _round(mean + half),
            "n": int(x.size)}  # fmt: skip


def _round(value: float) -> float:
    return round(value, 4)


def mean_mbps(run: Record, series: str, begin_s: float, end_s: float) -> float:
    """Mean of a run's ``mptcp_mbps`` or ``rival_mbps`` over the whole seconds of a stretch."""
    return float(np.mean(run[series][int(np.ceil(begin_s)) : int(end_s)]))


def measured(run: Record, series: str = "mptcp_mbps") -> float:
    """Mean throughput without the run's first two windows."""
    return mean_mbps(run, series, run["warmup_s"], run["duration_s"])


def judged(run: Record, number: int | None = None) -> list[tuple[dict[str, Any], bool]]:
    """Verdicts with a window within one phase (or phase `number`), and whether each is right."""
    found = []
    phases = run["phases"] if number is None else [run["phases"][number]]
    for verdict in run["verdicts"]:
        for phase in phases:
            begin_s = phase["from_s"] + run["window_s"] if phase["from_s"] else 0.0
            if begin_s <= verdict["at_s"] <= phase["to_s"]:
                found.append((verdict, verdict["class"] == label_class(phase["label"])))
    return found


def shift_delays_s(run: Record) -> list[dict[str, Any]]:
    """Delay with which each shift was noticed.

    Returns
    -------
    list of dict
        ``delay_s``: time from the shift to the first right verdict, None if the phase has none;
        ``already``: whether the verdict before the shift, wrong at that time, was that one.
    """
    found = []
    for phase in run["phases"][1:]:
        wanted = label_class(phase["label"])
        before = [v for v in run["verdicts"] if v["at_s"] < phase["from_s"]]
        times = [
            verdict["at_s"]
            for verdict in run["verdicts"]
            if phase["from_s"] <= verdict["at_s"] <= phase["to_s"] and verdict["class"] == wanted
        ]
        found.append(
            {
                "delay_s": round(times[0] - phase["from_s"], 3) if times else None,
                "already": bool(before) and before[-1]["class"] == wanted,
            }
        )
    return found


def summarise(records: Iterable[Record]) -> dict[str, Any]:
    """Compute all figures that docs/live.md quotes.

    Parameters
    ----------
    records : iterable of dict
        Lines of live.jsonl.

    Returns
    -------
    dict
        Figures of each congestion control per scenario and site, and ``verdicts``, ``cost`` and
        ``runs`` over all of them.
    """
    records = list(records)
    runs = [r for r in records if r["kind"] == "run"]
    valid = [r for r in runs if r["valid"]]
    scenarios: dict[str, Any] = {}
    for scenario in dict.fromkeys(r["scenario"] for r in valid):
        of_scenario = [r for r in valid if r["scenario"] == scenario]
        scenarios[scenario] = {
            site: _site([r for r in of_scenario if r["site"] == site])
            for site in dict.fromkeys(r["site"] for r in of_scenario)
        }
    return {
        "model": sorted({r["model"] for r in runs}),
        "confidence": CONFIDENCE,
        "runs": _runs(runs),
        "scenarios": scenarios,
        "verdicts": _agreement(valid),
        "cost": _cost(valid, [r for r in records if r["kind"] == "session"]),
    }


def _runs(runs: Sequence[Record]) -> dict[str, Any]:
    valid = [r for r in runs if r["valid"]]
    return {
        "valid": len(valid),
        "invalid": len(runs) - len(valid),
        "invalid_reasons": _count(reason for r in runs for reason in r["reasons"]),
        "doubts": _count(doubt for r in valid for doubt in r["doubts"]),
        "lateness_p99_us": max((r["lateness_us"]["p99"] for r in valid), default=None),
        "steal_max": max((r["steal"] for r in valid), default=None),
        "load_mean": _round(float(np.mean([r["load"] for r in valid]))) if valid else None,
    }


def _count(words: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return dict(sorted(found.items()))


def _site(runs: Sequence[Record]) -> dict[str, Any]:
    controls = list(dict.fromkeys(r["cc"] for r in runs))
    result: dict[str, Any] = {
        "window_s": interval([r["window_s"] for r in runs])["mean"],
        "controls": {cc: _control([r for r in runs if r["cc"] == cc]) for cc in controls},
    }
    if len(runs[0]["phases"]) == 1:
        result["relative_to_smartsbd"] = _relative(runs, measured)
    else:
        result["relative_to_smartsbd"] = {
            f"phase {i + 1}": _relative(runs, partial(phase_mean, number=i))
            for i in range(len(runs[0]["phases"]))
        }
    return result


def phase_mean(run: Record, number: int, series: str = "mptcp_mbps") -> float:
    """Mean throughput in one phase, without its first two windows."""
    phase = run["phases"][number]
    return mean_mbps(run, series, phase["from_s"] + run["warmup_s"], phase["to_s"])


def _relative(runs: Sequence[Record], value: Callable[[Record], float]) -> dict[str, Any]:
    """Ratio to SmartSBD's run of the same seed, which had the same conditions."""
    base = {r["seed"]: value(r) for r in runs if r["cc"] == REFERENCE}
    both = [r for r in runs if r["cc"] != REFERENCE and base.get(r["seed"])]
    return {
        cc: interval([value(r) / base[r["seed"]] for r in both if r["cc"] == cc])
        for cc in dict.fromkeys(r["cc"] for r in both)
    }


def _control(runs: Sequence[Record]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if len(runs[0]["phases"]) == 1:
        found["mptcp_mbps"] = interval([measured(r) for r in runs])
        if runs[0]["rival_mbps"] is not None:
            pairs = [(measured(r), measured(r, "rival_mbps")) for r in runs]
            found["rival_mbps"] = interval([tcp for _, tcp in pairs])
            found["mptcp_share"] = interval([m / (m + tcp) for m, tcp in pairs])
            found["mptcp_over_rival"] = interval([m / tcp for m, tcp in pairs])
    else:
        for i, phase in enumerate(runs[0]["phases"]):
            rival = [phase_mean(r, i, "rival_mbps") for r in runs]
            found[f"phase {i + 1}"] = {
                "label": phase["label"],
                "mptcp_mbps": interval([phase_mean(r, i) for r in runs]),
                "rival_mbps": interval(rival),
            }
    if any(r["verdicts"] for r in runs):
        found["verdicts"] = _verdicts(runs)
    return found


def _verdicts(runs: Sequence[Record]) -> dict[str, Any]:
    """Count verdicts by what holds after each; ``not_known`` left what held before."""

    def share(run: list[tuple[dict[str, Any], bool]]) -> float:
        return sum(right for _, right in run) / len(run)

    by_run = [judged(r) for r in runs]
    first = [right[0][1] for right in by_run if right]
    result: dict[str, Any] = {
        "per_run": interval([len(r["verdicts"]) for r in runs])["mean"],
        "first_at_s": interval([r["verdicts"][0]["at_s"] for r in runs if r["verdicts"]]),
        "right": sum(right for run in by_run for _, right in run),
        "judged": sum(len(run) for run in by_run),
        "not_known": sum(not v.get("known", True) for run in by_run for v, _ in run),
        "right_share": interval([share(run) for run in by_run if run]),
        "first_right": sum(first),
    }
    if len(runs[0]["phases"]) > 1:
        delays = [shift_delays_s(r) for r in runs]
        for number, shift in enumerate(zip(*delays, strict=True), start=1):
            waited = [found["delay_s"] for found in shift if not found["already"]]
            result[f"shift {number}"] = {
                "delay_s": interval([delay for delay in waited if delay is not None]),
                "not_detected": waited.count(None),
                "already": len(shift) - len(waited),
            }
        for number in range(len(runs[0]["phases"])):
            own = [judged(r, number) for r in runs]
            result[f"phase {number + 1}"] = {
                "right": sum(right for run in own for _, right in run),
                "judged": sum(len(run) for run in own),
            }
    return result


def _agreement(runs: Sequence[Record]) -> dict[str, Any]:
    verdicts = [v for r in runs for v in r["verdicts"]]
    answered = [v for v in verdicts if v["kernel_class"] is not None]
    after_us = [v["answered_after_us"] for v in answered]
    return {
        "verdicts": len(verdicts),
        "answered_by_the_kernel": len(answered),
        "mismatches": sum(v["kernel_class"] != v["class"] for v in answered),
        "answered_after_us": _spread(after_us),
        "checked_in_python": sum(r["check"]["windows"] for r in runs if "check" in r),
        "unequal_to_python": sum(r["check"]["unequal"] for r in runs if "check" in r),
    }


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {"mean": None, "median": None, "p99": None, "max": None}
    return {
        "mean": round(float(np.mean(values)), 3),
        "median": round(float(np.median(values)), 3),
        "p99": round(float(np.percentile(values, 99)), 3),
        "max": round(float(np.max(values)), 3),
    }


def _cost(runs: Sequence[Record], sessions: Sequence[Record]) -> dict[str, Any]:
    agents = [r["agent"] for r in runs if r["agent"]]
    with_events = [a for a in agents if a["events"]]
    verdicts = [v for r in runs for v in r["verdicts"]]
    ns: dict[str, dict[str, dict[str, int]]] = {}
    for session in sessions:
        for control, operations in session["bpf"].items():
            for operation, counted in operations.items():
                total = ns.setdefault(control, {}).setdefault(operation, {"runs": 0, "ns": 0})
                total["runs"] += counted["runs"]
                total["ns"] += counted["ns"]
    return {
        "bpf": {control: _per_ack(operations) for control, operations in sorted(ns.items())},
        "agent": {
            "features_us": _spread([v["features_ns"] / 1e3 for v in verdicts]),
            "classify_ns": _spread([v["classify_ns"] for v in verdicts]),
            "cpu_share": interval([a["cpu_s"] / a["wall_s"] for a in agents]),
            "us_per_event": interval([1e6 * a["cpu_s"] / a["events"] for a in with_events]),
            "late_rtts": sum(a["late"] for a in agents),
            "lost_events": sum(a["lost"] for a in agents),
            "state_bytes": agents[0]["state_bytes"] if agents else None,
        },
    }


def _per_ack(operations: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Time of all operations divided by the calls for acknowledged data."""
    acks = operations["cong_avoid"]["runs"]
    return {
        "acks": acks,
        "ns_per_cong_avoid": round(operations["cong_avoid"]["ns"] / acks, 1) if acks else None,
        "ns_per_ack": round(sum(o["ns"] for o in operations.values()) / acks, 1) if acks else None,
        "operations": operations,
    }
