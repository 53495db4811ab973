"""Play a trained agent and CUBIC in one scenario, and note windows, RTT and rate over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from data.netsim import scenario
from data.netsim.network import Network
from data.netsim.scenario import Scenario
from models.policies.scenes import under_test
from pipelines.rl.results import SHOWN

BESIDE = "cubic"
SEED = 1
POINTS = 160
"""Points of each series, at most."""


class Notes:
    """What is noted of a simulation every ``step_s``.

    Parameters
    ----------
    step_s : float
        Least time from one note to the next.
    own : list of int
        Connections to look at.
    """

    def __init__(self, step_s: float, own: list[int]) -> None:
        self._step_s, self._own, self._next = step_s, own, 0.0
        self._rows: list[tuple[float, float, int, int, list[int]]] = []

    def look(self, network: Network) -> None:
        """Note how things stand, if it is time to."""
        if network.now_s < self._next - 1e-9:
            return
        self._next = network.now_s + self._step_s
        conns = network.state.conn[self._own]
        subs = network.state.sub[np.isin(network.state.sub["conn"], self._own)]
        data = float((conns["data_rcv"] * conns["payload"]).sum())
        seen = int(subs["rtt_sum"].sum()), int(subs["rtt_n"].sum())
        self._rows.append((network.now_s, data, *seen, subs["cwnd"].tolist()))

    def series(self) -> dict[str, Any]:
        """The run as `pipelines.rl.results.Series` has it."""
        found: dict[str, Any] = {"time_s": [], "mbps": [], "rtt_ms": [], "windows": []}
        for before, after in zip(self._rows, self._rows[1:], strict=False):
            acks = after[3] - before[3]
            found["time_s"].append(round(after[0], 3))
            found["mbps"].append(round(8e-6 * (after[1] - before[1]) / (after[0] - before[0]), 4))
            mean = (after[2] - before[2]) / acks / 1e6 if acks else None
            found["rtt_ms"].append(None if mean is None else round(mean, 4))
            found["windows"].append(after[4])
        found["windows"] = [list(one) for one in zip(*found["windows"], strict=True)]
        return found


def trajectory(agent: str, folder: Path) -> dict[str, Any]:
    """Content of ``trajectory.json``; see `pipelines.rl.results.Trajectory`.

    Parameters
    ----------
    agent : str
        A key of `pipelines.rl.results.SHOWN`.
    folder : Path
        Its training.
    """
    from models.closedloop import Player
    from models.policies.policy import of_training

    name, label = SHOWN[agent]
    spec = scenario.load(name)[label]
    notes = _notes(spec)
    Player(of_training(folder)).play([(spec, SEED)], lambda batch, _: notes.look(batch.networks[0]))
    title = f"{name}, {label}" if label else name
    runs = {agent: notes.series(), BESIDE: _beside(spec)}
    return {"scenario": name, "title": title, "seed": SEED, "runs": runs}


def _beside(spec: Scenario) -> dict[str, Any]:
    notes, network = _notes(spec), Network(spec, BESIDE, SEED)
    for i in range(POINTS + 1):
        network.advance(i * spec.duration_s / POINTS)
        notes.look(network)
    return notes.series()


def _notes(spec: Scenario) -> Notes:
    return Notes(spec.duration_s / POINTS, [i for i, _ in under_test(spec)])
