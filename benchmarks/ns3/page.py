"""The page of the comparison with ns-3: notes, then a table made of the runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.ns3.cases import Case, Dumbbell

NOTES = Path(__file__).parent / "notes.md"
BAND = 0.05
"""Goodput and RTT are called alike within this."""

_RESAMPLES = 2000
_HEAD = (
    "| case | path | runs | goodput, Mbps | ratio | RTT, ms | ratio | drops, % | queue, packets "
    "| outside 5 % |"
)

Rows = list[tuple[Case, list[dict[str, float]], list[dict[str, float]]]]


def page(rows: Rows) -> str:
    """Markdown: `notes.md` and a line per case.

    Parameters
    ----------
    rows : list of (Case, list of dict, list of dict)
        Each case with ns-3's runs and the simulator's.
    """
    lines = [NOTES.read_text(encoding="utf-8").rstrip(), "", "## Beside ns-3.37", ""]
    lines += [
        "ns-3 / netsim, medians over runs of different seeds (their number is in the column); "
        "ratios are netsim's over ns-3's, in brackets the 95 % interval of a bootstrap over runs. "
        "The last column names what is outside 5 %, with a question mark where the interval "
        "reaches into it.",
        "",
        _HEAD,
        "| " + " | ".join(["---"] * (_HEAD.count("|") - 1)) + " |",
    ]
    lines += [_line(*row) for row in rows]
    return "\n".join(lines) + "\n"


def _line(case: Case, theirs: list[dict[str, float]], ours: list[dict[str, float]]) -> str:
    def pair(metric: str, scale: float, digits: int) -> str:
        a, b = (scale * float(np.median([run[metric] for run in side])) for side in (theirs, ours))
        return f"{a:.{digits}f} / {b:.{digits}f}"

    outside, ratios = [], []
    for metric, name in (("goodput_mbps", "goodput"), ("rtt_ms", "RTT")):
        ratio, low, high = _ratio([r[metric] for r in theirs], [r[metric] for r in ours])
        ratios.append(f"{ratio:.2f} ({low:.2f}–{high:.2f})")
        if abs(ratio - 1.0) > BAND:
            reaches = low <= 1.0 + BAND and high >= 1.0 - BAND
            outside.append(name + ("?" if reaches else ""))
    cells = [
        case.name, _path(case.where), f"{len(theirs)} / {len(ours)}",
        pair("goodput_mbps", 1.0, 2), ratios[0], pair("rtt_ms", 1.0, 1), ratios[1],
        pair("drop_rate", 100.0, 3), pair("queue_packets", 1.0, 1), ", ".join(outside) or "–",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _path(where: Dumbbell) -> str:
    """Flows, RTT without queues, loss and buffer in words."""
    rtt = 2 * where.delay + 4 * where.access
    loss = f"{100 * where.loss:g} % loss, " if where.loss else ""
    return f"{where.flows} × {rtt:g} ms, {loss}{where.queue} packets"


def _ratio(theirs: list[float], ours: list[float]) -> tuple[float, float, float]:
    """Ratio of medians and its 95 % interval."""
    rng = np.random.default_rng(0)
    a = np.median(rng.choice(theirs, (_RESAMPLES, len(theirs))), axis=1)
    b = np.median(rng.choice(ours, (_RESAMPLES, len(ours))), axis=1)
    low, high = np.quantile(b / a, [0.025, 0.975])
    return float(np.median(ours) / np.median(theirs)), float(low), float(high)
