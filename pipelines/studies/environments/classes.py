"""Shows what TCCO's reward prefers on ten classes of paths: constant windows side by side.

A class is two like paths of one base RTT and one rate. All windows are played at once, each in an
environment of its own; the last environment raises its windows at every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.envs.samplers import path_class
from models.envs.scripted import Actions, tcco_windows
from models.envs.tcco import TccoBatch
from pipelines.output import progress
from pipelines.studies.environments.judge import CONSTANT, play

CLASSES = tuple((rtt_ms, rate) for rtt_ms in (3.0, 10.0, 30.0, 100.0, 300.0)
                for rate in (20.0, 500.0))  # fmt: skip
"""Base RTT (ms) and rate (Mbps) of each class."""
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
"""The windows, in products of rate and base RTT."""


def figures(steps: int | None = None) -> list[dict[str, Any]]:
    """One row per class: the window of the best return, its goodput beside the best, overload."""
    return [_row(*one, steps) for one in progress(CLASSES, "path classes", len(CLASSES))]


def _row(rtt_ms: float, rate_mbps: float, steps: int | None) -> dict[str, Any]:
    product = rate_mbps * 1e3 * rtt_ms / 8 / 1500
    windows = np.array([max(4, round(share * product)) for share in SHARES])
    wanted = np.append(windows, 0)[:, None]
    go_there = tcco_windows(lambda batch: wanted)

    def act(batch: TccoBatch) -> Actions:
        actions = go_there(batch)
        actions[-1] = 2 * batch.params.reach
        return actions

    def make(n: int) -> TccoBatch:
        return TccoBatch(n, path_class(rtt_ms, rate_mbps), stagger=False)

    found = play(("windows", CONSTANT, make, lambda: act), len(wanted), steps)
    returns, mbps = found.returns, found.mbps
    best = int(returns[:-1].argmax())
    return {
        "rtt_ms": rtt_ms,
        "rate_mbps": rate_mbps,
        "share": SHARES[best],
        "window": int(windows[best]),
        "return": float(returns[best]),
        "mbps": float(mbps[best]),
        "mean_rtt_ms": float(found.rtt_ms[best]),
        "of_best_mbps": float(mbps[best] / mbps[:-1].max()),
        "three_times": float(returns[SHARES.index(3.0)]),
        "four_times": float(returns[SHARES.index(4.0)]),
        "always_raised": float(returns[-1]),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The classes as a Markdown table."""
    lines = [
        "| base RTT, ms | Mbps of a path | best window | return | Mbps | of the best | RTT, ms "
        "| 3 products | 4 products | always up |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['rtt_ms']:g} | {row['rate_mbps']:g} | {row['window']} ({row['share']:g} products) "
        f"| {row['return']:.2f} | {row['mbps']:.1f} | {100 * row['of_best_mbps']:.1f} % "
        f"| {row['mean_rtt_ms']:.1f} | {row['three_times']:.2f} | {row['four_times']:.2f} "
        f"| {row['always_raised']:.2f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
