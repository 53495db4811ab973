"""The kernel lab's connections as simulator scenarios: the same stages, paths and traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from data.lab import rates, topology
from data.lab.scenario import Background, RateProcess, Stage
from data.lab.scenario import Scenario as LabScenario
from data.netsim.elements import Flow, Link, Path_
from data.netsim.scenario import Scenario

WARMUP_S = 0.5
"""How much earlier than the connection its background traffic begins, as in the lab."""
SEGMENT: dict[str, Any] = {"segment_bytes": 1424, "header_bytes": 76}
"""MPTCP's data sequence option takes 24 bytes of each segment."""
READ_MS = 5.2
"""How often the lab's receivers look at their sockets: after a nap of 5 ms and their work."""
WINDOW_BYTES = 33_554_432
"""The lab's receive buffers, which limit nothing."""


def scenario_of(record: Mapping[str, Any]) -> Scenario:
    """What a record of ``campaign.jsonl`` ran, for the simulator.

    Parameters
    ----------
    record : mapping
        ``scenario`` (of :class:`data.lab.scenario.Scenario`, as drawn for the run), ``seed``,
        and ``lateness_us`` of the lab's emulator in that run, if it was measured.

    Returns
    -------
    Scenario
        The connection is the first flow, called by its transport, its paths in the order of the
        subflows; background flows that pause are one finite flow per burst.
    """
    lab = LabScenario.model_validate(record["scenario"])
    links = {name: _link(stage, lab.duration_s) for name, stage in lab.stages.items()}
    links["none"] = Link()
    late = record.get("lateness_us")
    if late is not None and "p50" in late:
        spread = (late["p50"], max(late["p99"], 1.01 * late["p50"]))
        for name in {path[-1] for path in lab.paths.values() if path}:
            links[name] = links[name].model_copy(update={"lateness_us": spread})
    rng = np.random.default_rng(int(record["seed"]))
    flows = [
        Flow(
            name=lab.transport,
            cc=lab.cc,
            start_s=WARMUP_S,
            window_bytes=WINDOW_BYTES,
            read_every_ms=READ_MS,
            size_bytes=lab.size_bytes,
            paths=[_path(lab, name, f"{name}_back") for name in order_of(lab)],
            **(SEGMENT if lab.transport == "mptcp" else {}),
        )
    ]
    for number, background in enumerate(lab.background):
        flows += _background(lab, background, number, rng)
    return Scenario(
        title=f"{lab.dataset} {lab.case}",
        source=str(record["id"]),
        duration_s=WARMUP_S + lab.duration_s,
        links=links,
        flows=flows,
    )


def order_of(lab: LabScenario) -> tuple[str, ...]:
    """The connection's paths as its subflows are numbered, from 1 on."""
    return tuple(sorted(lab.data_paths, key=lambda name: name != lab.first))


def _link(stage: Stage, duration_s: float) -> Link:
    given: dict[str, Any] = {
        "delay_ms": stage.delay_ms,
        "jitter_ms": stage.jitter_ms,
        "loss": stage.loss,
        "queue_packets": stage.queue_packets,
        "queue_bytes": stage.limit_bytes,
        "rate_mbps": stage.rate_mbps,
        "trace": stage.trace,
    }
    if isinstance(stage.steps, RateProcess):
        process = stage.steps
        series = rates.series(process.kind, process.mean_mbps, duration_s + 5, process.seed)
        given["steps"] = [(float(t), float(mbps)) for t, mbps in series]
        given["period_s"] = duration_s + 5
    elif stage.steps is not None:
        given["trace"] = stage.steps
    elif stage.schedule is not None:
        given["steps"] = list(stage.schedule)
        given["period_s"] = stage.schedule[-1][0] + 10 * duration_s
    return Link(**given)


def _path(lab: LabScenario, forward: str, back: str) -> Path_:
    paths = topology.paths(lab)
    return Path_(forward=list(paths[forward]) or ["none"], back=list(paths[back]))


def _background(
    lab: LabScenario, flow: Background, number: int, rng: np.random.Generator
) -> list[Flow]:
    same = flow.cc == "same"
    common: dict[str, Any] = {
        "cc": None if same else flow.cc,
        "rate_mbps": flow.rate_mbps or (None if same else _greedy_mbps(flow)),
        "window_bytes": WINDOW_BYTES,
        "read_every_ms": 0.0 if same else READ_MS,
        "measure": same,
        "paths": [_path(lab, f"bg_{flow.over}", f"bg_{flow.over}_back")],
    }
    if flow.on_s is None or flow.off_s is None:
        return [Flow(name=f"background{number}", **common)]
    bursts: list[Flow] = []
    at_s = 0.0
    end_s = WARMUP_S + lab.duration_s
    while at_s < end_s:
        stop_s = at_s + max(0.05, float(rng.exponential(flow.on_s)))
        name = f"background{number}_{len(bursts)}"
        bursts.append(Flow(name=name, start_s=at_s, stop_s=stop_s, **common))
        at_s = stop_s + max(0.05, float(rng.exponential(flow.off_s)))
    return bursts


def _greedy_mbps(flow: Background) -> float:
    """Rate of a greedy sender of the lab, which writes one block every `READ_MS`."""
    return 8e-3 * flow.burst_bytes / READ_MS
