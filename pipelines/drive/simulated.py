"""The same scenarios in the simulator, beside the kernel's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from data.netsim.elements import Flow
    from data.netsim.scenario import Scenario
    from pipelines.drive.played import Playing

FIGURES = ("goodput_mbps", "rtt_ms", "rtt_p95_ms", "retransmit_rate", "fct_ms", "jain")
"""What is compared of a run; which of them it has, its scenario says."""


def begun(spec: Scenario) -> Scenario:
    """The same with the lab's beginning: who starts when, and from when on figures count.

    The lab's other senders have connected before the half second in which they send alone, and its
    figures begin when the receiver has accepted the connection. On a path of 280 ms that is most
    of a second in which they fill the link.
    """
    first, *others = spec.flows
    if not others:
        return spec.model_copy(update={"warmup_s": first.start_s})
    connected_s = max(_delay_s(spec, one, ("forward", "back")) for one in others)
    start_s = connected_s + first.start_s
    accepted_s = start_s + _delay_s(spec, first, ("forward", "back", "forward"))
    update = {
        "flows": [first.model_copy(update={"start_s": start_s}), *others],
        "warmup_s": accepted_s,
        "duration_s": accepted_s + spec.duration_s - first.start_s,
    }
    return spec.model_copy(update=update)


def _delay_s(spec: Scenario, flow: Flow, legs: tuple[str, ...]) -> float:
    """Propagation delay of a flow's first path, there, back and so on."""
    names = [name for leg in legs for name in getattr(flow.paths[0], leg)]
    return sum(spec.links[name].delay_ms for name in names) / 1e3


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
    spec = begun(spec.model_copy(update={"flows": [first, *spec.flows[1:]]}))
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
