"""The same scenarios in the simulator, beside the kernel's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.closedloop import Player

Play = Callable[[float], "Player"]
FIGURES = ("goodput_mbps", "rtt_ms", "rtt_p95_ms", "retransmit_rate", "fct_ms", "jain")
"""What is compared of a run; which of them it has, its scenario says."""


def simulated(record: Mapping[str, Any], play: Play | None) -> dict[str, float] | None:
    """Figures of a run in the simulator: the same links and control, and the run's own seed.

    Parameters
    ----------
    record : mapping
        As `pipelines.drive.runs.carry_out` made it.
    play : callable, optional
        From a delay of its actions in ms to the policy as a player, where the run was a policy's;
        None of one that the simulator can't play.

    Returns
    -------
    dict or None
        `FIGURES`.
    """
    from data.netsim import from_lab
    from data.netsim.metrics import simulate
    from pipelines.drive.tasks import behind_ms

    described = {
        "id": record["site"],
        "scenario": record["drawn"],
        "seed": record["seed"],
        "lateness_us": record.get("lateness_us"),
    }
    spec = from_lab.scenario_of(described)
    # The lab's receivers take no naps here.
    first = spec.flows[0].model_copy(update={"cc": None, "read_every_ms": 0.0})
    spec = spec.model_copy(update={"flows": [first, *spec.flows[1:]]})
    away_ms = behind_ms(str(record["control"]))
    if away_ms is not None or record["control"] == "tree":
        if play is None:
            return None
        row = play(float(away_ms or 0)).play([(spec, int(record["seed"]))])[0]
    elif record["control"] == "nuwa":
        held = record["receiver"]
        flow = spec.flows[0].model_copy(
            update={"target_delay_ms": held["target_ms"], "k": held["gain"]}
        )
        spec = spec.model_copy(update={"flows": [flow, *spec.flows[1:]]})
        row = simulate(spec, "nuwa", int(record["seed"]))
    else:
        row = simulate(spec, str(record["control"]), int(record["seed"]))
    return {name: float(row[name]) for name in FIGURES if name in row and name in record}
