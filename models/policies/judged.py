"""How a policy does beside classical controls, in the scenarios of its own paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data.netsim.runner import Progress, evaluate
from models.closedloop import Player

BESIDE = ("cubic", "bbr")
"""Controls that every policy is shown beside."""
SCENARIOS: dict[str, tuple[str, ...]] = {
    "tcco": ("tcco-fig9a", "tcco-fig9-loss", "tcco-table2"),
    "nuwa": ("nuwa-table1", "nuwa-fig16"),
    "macc": ("macc-fig4",),
}
"""Environment -> named scenarios."""
PAPER = {"macc": "ma-cc", "nuwa": "nuwa", "tcco": "tcco"}
"""Environment -> what a scenario's own numbers call the paper's agent."""


def rows(
    player: Player,
    seeds: int,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Evaluate a policy beside `BESIDE`; rows of `data.netsim.runner.evaluate`.

    Parameters
    ----------
    player : Player
    seeds : int
    settings : mapping, optional
        Dotted key -> value laid over each scenario.
    progress : callable, optional
    """
    names = list(SCENARIOS[player.policy.environment])
    controls = [*BESIDE, player.name]
    given = dict(settings or {})
    return evaluate(names, controls, seeds, given, 1, progress, {player.name: player})


def power(row: Mapping[str, Any]) -> float:
    """Goodput over round-trip time (Mbit/s per ms), means over seeds; 0 if nothing came back."""
    metrics = row["metrics"]
    if "rtt_ms" not in metrics:
        return 0.0
    return float(metrics["goodput_mbps"]["mean"] / metrics["rtt_ms"]["mean"])


def lost(name: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Scenarios in which a policy has less power than one of the others, in a line each."""
    told = []
    for row in found:
        where = row["scenario"], row["variant"]
        if row["cc"] != name:
            continue
        for other in found:
            there = (other["scenario"], other["variant"]) == where and other["cc"] != name
            if there and power(other) > power(row):
                shown = " ".join(filter(None, where))
                told.append(
                    f"{shown}: {power(row):.3g} Mbit/s per ms of RTT, {other['cc']} has "
                    f"{power(other):.3g}"
                )
    return told
