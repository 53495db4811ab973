"""The same scenarios in the simulator, beside the kernel's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.drive.played import Playing

FIGURES = ("goodput_mbps", "rtt_ms", "rtt_p95_ms", "retransmit_rate", "fct_ms", "jain")
"""What is compared of a run; which of them it has, its scenario says."""


def simulated(record: Mapping[str, Any], playing: Playing) -> dict[str, float] | None:
    """Figures of a run in the simulator: the same links and control, and the run's own seed.

    Parameters
    ----------
    record : mapping
        As `pipelines.drive.runs.carry_out` made it.
    playing : Playing
        Who plays what isn't one of the simulator's own controls.

    Returns
    -------
    dict or None
        `FIGURES`; None of what the simulator can't play.
    """
    from data.netsim import from_lab
    from data.netsim.metrics import simulate
    from pipelines.drive.tasks import AQM, INSIDE, behind_ms

    described = {
        "id": record["site"],
        "scenario": record["drawn"],
        "seed": record["seed"],
        "lateness_us": record.get("lateness_us"),
    }
    spec = from_lab.scenario_of(described)
    # The lab's receivers take no naps here.
    first = spec.flows[0].model_copy(update={"cc": None, "read_every_ms": 0.0})
    # A lab's figures begin with the connection, not with what runs before it.
    begun = {"warmup_s": from_lab.WARMUP_S, "flows": [first, *spec.flows[1:]]}
    spec = spec.model_copy(update=begun)
    control = str(record["control"])
    if held := record.get("receiver"):
        update = {"target_delay_ms": held["target_ms"], "k": held["gain"]}
        flows = [spec.flows[0].model_copy(update=update), *spec.flows[1:]]
        spec = spec.model_copy(update={"flows": flows})
    if behind_ms(control) is not None or control.endswith(AQM) or control in INSIDE:
        player = playing.player(control)
        if player is None:
            return None
        row = player.play([(spec, int(record["seed"]))])[0]
    else:
        row = simulate(spec, control, int(record["seed"]))
    return {name: float(row[name]) for name in FIGURES if name in row and name in record}
