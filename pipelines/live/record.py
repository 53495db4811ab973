"""Make the record of a live run: throughput of each second, verdicts, and the truth over time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from data.lab.scenario import Scenario
from data.lab.validate import HOST_REASONS, WINDOW_MIN_RTTS
from models.sbd.accumulate import NSB, SB

MBIT = 1e6
WARMUP_WINDOWS = 2.0
"""Left out at a run's start: slow start until both subflows have met a limit, and the first
window, after which the first verdict comes."""
KEPT = ("seed", "slot", "kernel", "started", "load", "steal", "lateness_us", "throughput_mbps",
        "bottleneck", "rtt_wifi_ms", "rtt_lte_ms")  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A run to be done."""

    scenario: str
    site: str
    cc: str
    repeat: int
    seed: int
    drawn: Scenario
    attempt: int = 0

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Values that tell the task from others."""
        return self.scenario, self.site, self.cc, self.repeat

    @property
    def name(self) -> str:
        """Name of the task's files."""
        return f"{self.scenario}-{self.site}-{self.cc}-{self.repeat}"


def window_s(drawn: Scenario) -> float:
    """Window length T of the paper for the scenario's own delays, in s."""
    return WINDOW_MIN_RTTS * max(drawn.base_rtt_ms("wifi"), drawn.base_rtt_ms("lte")) / 1e3


def phases(drawn: Scenario, offset_s: float) -> list[dict[str, Any]]:
    """Stretches of one bottleneck, in s since the connection began.

    Parameters
    ----------
    drawn : Scenario
        The scenario, whose rates are constant or follow a schedule.
    offset_s : float
        Time at which the connection began, on the schedule's clock.

    Returns
    -------
    list of dict
        ``from_s``, ``to_s``, ``label``.
    """
    times = sorted(
        {time_s for stage in drawn.stages.values() for time_s, _ in stage.schedule or ()}
    )
    if not times:
        return [{"from_s": 0.0, "to_s": drawn.duration_s, "label": drawn.label}]
    found = []
    for begin_s, end_s in pairwise([*times, drawn.duration_s + offset_s]):
        access = sum(_rate_mbps(drawn, path, begin_s) for path in ("wifi", "lte"))
        shared = _rate_mbps(drawn, drawn.bottleneck.wifi, begin_s)
        found.append(
            {
                "from_s": max(0.0, begin_s - offset_s),
                "to_s": end_s - offset_s,
                "label": "SB" if shared < access else "NSB",
            }
        )
    return found


def _rate_mbps(drawn: Scenario, stage: str, time_s: float) -> float:
    schedule = drawn.stages[stage].schedule
    if schedule is None:
        return drawn.stages[stage].mean_mbps or float("inf")
    return [mbps for begin_s, mbps in schedule if begin_s <= time_s][-1]


def record(task: Task, lab: dict[str, Any], agent_log: Path | None, model: str) -> dict[str, Any]:
    """Make the record that is kept of a run.

    Parameters
    ----------
    task : Task
        The task that was run.
    lab : dict
        The lab's record, with ``emulator_t0_s`` and its traffic's ``per_second`` and ``begun_s``.
    agent_log : Path, optional
        The agent's verdicts.
    model : str
        Hash of the model.

    Returns
    -------
    dict
        ``valid`` is false if the host or the lab failed. ``doubts`` holds whatever the emulator
        has measured against the label.
    """
    reasons = lab["reasons"]
    host = [reason for reason in reasons if reason in HOST_REASONS]
    kept: dict[str, Any] = {
        "kind": "run",
        "scenario": task.scenario,
        "site": task.site,
        "cc": task.cc,
        "repeat": task.repeat,
        "attempt": task.attempt,
        "model": model,
        "valid": not host,
        "reasons": host,
        "doubts": [reason for reason in reasons if reason not in HOST_REASONS],
        **{name: lab[name] for name in KEPT if name in lab},
    }
    if "traffic" not in lab:
        return kept | {"error": lab.get("error")}
    traffic = lab["traffic"]
    begun_s = float(traffic["begun_s"])
    drawn = task.drawn
    offset_s = begun_s - float(lab["emulator_t0_s"])
    flows = traffic["per_second"]["background"]
    rival = next((i for i, flow in enumerate(drawn.background) if flow.over == "rival"), None)
    moves = any(stage.schedule for stage in drawn.stages.values())
    kept |= {
        # If rates move, the emulator's account of the whole run is no evidence on the label.
        "doubts": [] if moves else kept["doubts"],
        "duration_s": drawn.duration_s,
        "window_s": round(window_s(drawn), 3),
        "warmup_s": round(WARMUP_WINDOWS * window_s(drawn), 3),
        "phases": phases(drawn, offset_s),
        "mptcp_mbps": _mbps(traffic["per_second"]["mptcp"]),
        "background_mbps": [round(float(np.mean(_mbps(flow))), 4) for flow in flows],
        "rival_mbps": None if rival is None else _mbps(flows[rival]),
        "verdicts": [],
        "agent": None,
    }
    if agent_log is not None:
        lines = [json.loads(line) for line in agent_log.read_text(encoding="ascii").splitlines()]
        kept["agent"] = next(line for line in lines if line.get("end"))
        kept["verdicts"] = [_verdict(line, begun_s) for line in lines if not line.get("end")]
    return kept


def _mbps(received: list[int]) -> list[float]:
    return [round(8 * count / MBIT, 4) for count in received]


def _verdict(line: dict[str, Any], begun_s: float) -> dict[str, Any]:
    answered = line["kernel_ns"] is not None
    return {
        "at_s": round(line["decided_ns"] / 1e9 - begun_s, 4),
        # What holds from here on; a verdict of "don't know" leaves it as it was.
        "class": line["class"],
        "known": line.get("verdict", line["class"]) >= 0,
        "kernel_class": line["kernel_class"],
        "answered_after_us": (line["kernel_ns"] - line["decided_ns"]) / 1e3 if answered else None,
        "features": line["features"],
        "features_ns": line["features_ns"],
        "classify_ns": line["classify_ns"],
    }


def label_class(label: str) -> int:
    """The class that a phase's label stands for."""
    return SB if label == "SB" else NSB
