"""Notes of a proxy: its decisions, when they took effect, and flows that were left to CUBIC.

A line begins with a letter: ``C`` an engine answered for the first time (time), ``L`` it was lost
(time); ``D`` a decision (sequence; end of the interval, newest ACK, question, answer and orders
written, all in ns); ``T`` its order for a flow (sequence, place, generation, window); ``S`` an
answer that came too late to count (sequence); ``A`` an order that the control applied (sequence,
place, time); ``K`` a decision of a policy in the kernel (number, place, ns that it took, time);
``P`` a flow's new phase (place, generation, phase, time, source port, window). Times are
CLOCK_MONOTONIC.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from data.lab.reports import ALONE, DRIVEN

PERCENTILES = (50, 99)


def summed_up(path: Path) -> dict[str, Any]:
    """Decisions of a run and how long they took.

    Returns
    -------
    dict
        ``decisions``, ``late`` (answers too old to count), ``engines_lost``, ``fallbacks`` and
        ``returns`` (phases of flows); ``engine_us``, ``written_us`` and ``applied_us`` with
        ``p50`` and ``p99``: from the question to the answer, from the interval's end to the orders
        written, and to the ACK with which the first of them was applied; ``kernel_ns`` of a
        policy in the kernel.
    """
    rows: dict[str, list[list[int]]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        kind, *numbers = line.split(",")
        rows.setdefault(kind, []).append([int(number) for number in numbers])
    made = {row[0]: row[1:] for row in rows.get("D", [])}
    applied: dict[int, int] = {}
    for sequence, _, time_ns in rows.get("A", []):
        applied[sequence] = min(time_ns, applied.get(sequence, time_ns))
    found: dict[str, Any] = {
        "decisions": len(made) + len(rows.get("K", [])),
        "late": len(rows.get("S", [])),
        "engines_lost": len(rows.get("L", [])),
        **_phases(rows.get("P", [])),
    }
    spans = {
        "engine_us": [row[3] - row[2] for row in made.values()],
        "written_us": [row[4] - row[0] for row in made.values()],
        "applied_us": [time_ns - made[n][0] for n, time_ns in applied.items() if n in made],
    }
    for name, values in spans.items():
        if values:
            found[name] = _percentiles(values, 1e3)
    if "K" in rows:
        found["kernel_ns"] = _percentiles([row[2] for row in rows["K"]], 1.0)
    return found


def _phases(rows: list[list[int]]) -> dict[str, int]:
    driven: set[tuple[int, int]] = set()
    fallbacks = returns = 0
    for place, generation, phase, *_ in rows:
        fallbacks += phase == ALONE
        returns += phase == DRIVEN and (place, generation) in driven
        if phase == DRIVEN:
            driven.add((place, generation))
    return {"fallbacks": fallbacks, "returns": returns}


def _percentiles(values: list[int], unit: float) -> dict[str, float]:
    return {f"p{p}": round(float(np.percentile(values, p)) / unit, 1) for p in PERCENTILES}
