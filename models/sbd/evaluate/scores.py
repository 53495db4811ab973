"""The figures of merit are the same for learned models and rules, in training and evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.sbd.accumulate import (
    UNDECIDED,
    VerdictSettings,
    accumulate,
    decide,
    evidence,
    last_of_each,
)
from models.sbd.params import THRESHOLD
from models.sbd.windows import Windows
from models.stats.calibration import reliability, sigmoid
from models.stats.intervals import by_connection

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def confusion(verdict: Ints, y: Ints) -> dict[str, dict[str, int]]:
    """Counts as ``{truth: {verdict: windows}}`` with SB, NSB and undecided."""
    names = {1: "SB", 0: "NSB", UNDECIDED: "undecided"}
    return {
        names[truth]: {names[said]: int(((y == truth) & (verdict == said)).sum()) for said in names}
        for truth in (1, 0)
    }


def share(hits: NDArray[np.bool_] | Floats) -> float | None:
    """Mean, or ``None`` of nothing."""
    return float(np.mean(hits)) if hits.size else None


def connection_state(probability: Floats, group: Ints, verdicts: VerdictSettings) -> Floats:
    """Accumulated log-odds after each window, float64 array [N]."""
    return accumulate(
        evidence(probability, verdicts),
        group,
        verdicts.decay,
        verdicts.temperature,
        verdicts.most,
    )


def score(
    table: Windows,
    probability: Floats,
    verdicts: VerdictSettings,
    columns: Sequence[str] = (),
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    threshold: float = THRESHOLD,
) -> dict[str, Any]:
    """Everything ``cczoo evaluate sbd --json`` prints about labelled rows.

    A window's answer is its own probability against the threshold; a connection's answer is the
    sign of the log-odds accumulated up to its last window.

    Parameters
    ----------
    table : Windows
        N labelled rows, connections side by side.
    probability : float64 array [N]
        P(SB) of each window.
    verdicts : VerdictSettings
        The model's calibration and accumulation.
    columns : sequence of str
        Attribute columns to break the accuracy down by.
    confidence, resamples, seed
        Settings of the bootstrap over connections.
    threshold : float
        SB if the probability is above it: the model's own.

    Returns
    -------
    dict
        See the keys below; accuracies of no windows are ``None``.
    """
    y, group = table.y, table.group
    said = (probability > threshold).astype(np.int64)
    hit = said == y
    state = connection_state(probability, group, verdicts)
    last = last_of_each(group)
    final = (state[last] >= 0).astype(np.int64) == y[last]
    standing = decide(state, verdicts.limit)
    decided = standing != UNDECIDED
    calibrated = sigmoid(evidence(probability, verdicts))

    def interval(hits: NDArray[np.bool_], of: Ints) -> dict[str, Any]:
        return {**by_connection(hits, of, confidence, resamples, seed)}

    return {
        "accuracy": share(hit),
        "sb_accuracy": share(hit[y == 1]),
        "nsb_accuracy": share(hit[y == 0]),
        "windows": len(table),
        "connection_accuracy": share(final),
        "connections": int(last.size),
        "by": {name: breakdown(table, name, hit, final, last) for name in columns},
        "intervals": {
            "accuracy": interval(hit, group),
            "sb_accuracy": interval(hit[y == 1], group[y == 1]),
            "nsb_accuracy": interval(hit[y == 0], group[y == 0]),
            "connection_accuracy": interval(final, group[last]),
        },
        "confusion": confusion(said, y),
        "accumulated": {
            "accuracy": share((state >= 0).astype(np.int64) == y),
            "undecided_windows": share(~decided),
            "decided_accuracy": share((standing == y)[decided]),
            "undecided_connections": share(~decided[last]),
            "decided_connection_accuracy": share((standing == y)[last][decided[last]]),
            "confusion": confusion(standing, y),
        },
        "calibration": reliability(calibrated, y) if len(table) else None,
    }


def breakdown(
    table: Windows, name: str, hit: NDArray[np.bool_], final: NDArray[np.bool_], last: Ints
) -> dict[str, dict[str, Any]]:
    """Accuracy per value of an attribute column."""
    value = table.column(name)
    of_last = value[last]
    return {
        str(one): {
            "accuracy": share(hit[value == one]),
            "windows": int((value == one).sum()),
            "connection_accuracy": share(final[of_last == one]),
            "connections": int((of_last == one).sum()),
        }
        for one in np.unique(value)
    }


LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Confidences that answers are counted for."""


def coverage(
    state: Floats, y: Ints, group: Ints, levels: Sequence[float] = LEVELS
) -> list[dict[str, Any]]:
    """How much is decided, and how rightly, at each level of confidence.

    Parameters
    ----------
    state : float64 array [N]
        Accumulated log-odds.
    y, group : int64 array [N]
        Labels and connections.
    levels : sequence of float
        Confidences asked for.
    """
    last = last_of_each(group)
    rows = []
    for level in levels:
        verdict = decide(state, float(np.log(level / (1 - level))))
        right = verdict == y
        done = verdict != UNDECIDED
        rows.append(
            {
                "confidence": level,
                "window_coverage": share(done),
                "window_accuracy": share(right[done]),
                "connection_coverage": share(done[last]),
                "connection_accuracy": share(right[last][done[last]]),
            }
        )
    return rows


def delay(table: Windows, probability: Floats, verdicts: VerdictSettings) -> list[dict[str, Any]]:
    """Time to a verdict, per data set.

    Counted from the start of a connection's first window, when both subflows have just been
    congested, to the end of the window at whose end the verdict falls; also from the
    connection's first event if the table has ``connection_start_us``.

    Returns
    -------
    list of dict
        ``dataset, connections, window_s`` (median T), quantiles of ``first_s`` (first window),
        ``confident_s`` (first confident verdict), ``stable_s`` (from here on the verdict is right
        until the end), and the shares of connections that get there. Seconds.
    """
    start = table.frame["start_us"].cast(int).to_numpy()
    end = table.frame["end_us"].cast(int).to_numpy()
    state = connection_state(probability, table.group, verdicts)
    verdict = decide(state, verdicts.limit)
    right = (state >= 0).astype(np.int64) == table.y
    begin = np.flatnonzero(np.append(True, table.group[1:] != table.group[:-1]))
    stop = np.append(begin[1:], len(table))
    opened = None
    if "connection_start_us" in table.frame.columns:
        opened = table.frame["connection_start_us"].cast(int).to_numpy()
    rows: list[dict[str, Any]] = []
    for a, b in zip(begin, stop, strict=True):
        decided = np.flatnonzero(verdict[a:b] != UNDECIDED)
        wrong = np.flatnonzero(~right[a:b])
        stable = a + (wrong[-1] + 1 if wrong.size else 0)
        rows.append(
            {
                "window_s": (end[a] - start[a]) / 1e6,
                "first_s": (end[a] - start[a]) / 1e6,
                "confident_s": (end[a + decided[0]] - start[a]) / 1e6 if decided.size else None,
                "stable_s": (end[stable] - start[a]) / 1e6 if stable < b else None,
                "from_start_s": None if opened is None else (end[a] - opened[a]) / 1e6,
            }
        )
    dataset = table.column("dataset")[begin]
    found = []
    for name in np.unique(dataset):
        mine = [row for row, d in zip(rows, dataset, strict=True) if d == name]
        one: dict[str, Any] = {"dataset": str(name), "connections": len(mine)}
        for key in ("window_s", "first_s", "confident_s", "stable_s", "from_start_s"):
            values = np.array([row[key] for row in mine if row[key] is not None])
            if values.size:
                low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
                one[key] = {"p10": float(low), "median": float(middle), "p90": float(high)}
                one[key]["share"] = values.size / len(mine)
        found.append(one)
    return found
