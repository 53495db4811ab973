"""The figures of a run in the league: power, and what it comes from."""

from __future__ import annotations

from dataclasses import dataclass

Row = dict[str, float | None]
"""Metric -> value; None if the scenario has no such thing."""


@dataclass(frozen=True)
class Metric:
    """A figure of a run: a heading, what it means, whether more is better, and its unit's size."""

    title: str
    says: str
    more: bool
    shown: float = 1.0


METRICS = {
    "power": Metric("power", "goodput of all measured flows as a share of the most they could get, "
                    "over the RTT ratio; 1 is a link of constant rate and delay that is full and "
                    "has no queue", True),
    "goodput": Metric("goodput", "the tested flow's goodput as a share of what the bottlenecks "
                      "carry", True),
    "rtt_ratio": Metric("RTT ratio", "mean RTT over that of the same path when nothing waits, "
                        "all measured flows", False),
    "rtt_ms": Metric("RTT, ms", "mean RTT of all measured flows", False),
    "loss": Metric("lost, %", "packets lost or dropped at the bottleneck, of those that arrived "
                   "there", False, 100.0),
    "resent": Metric("sent again, %", "segments sent again, of all sent", False, 100.0),
    "jain": Metric("Jain", "Jain's index of the goodputs of all measured flows", True),
    "share": Metric("share", "the tested flow's goodput over what CUBIC gets in its place", True),
    "left": Metric("left", "the neighbours' goodput over what they get beside CUBIC", True),
}  # fmt: skip
"""Figures of a run by their names in the file of runs."""
