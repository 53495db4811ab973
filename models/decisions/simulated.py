"""Decisions of classical controls in simulations, many side by side.

They run where an agent would: in its batch of environments, which takes over when its agent would
and calls its observer each interval. Since the flow runs a control of its own, what the agent
orders moves nothing; what the control did is read from the windows afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.decisions.run import Run
from data.netsim.network import Network
from data.netsim.scenario import Scenario
from data.netsim.seen import CODES
from data.netsim.state import VARIABLES
from models.decisions import macc
from models.decisions.tcco import Settings, replayer, run
from models.envs.macc import MaccBatch
from models.envs.samplers import two_paths
from models.envs.tcco import TccoBatch


@dataclass(frozen=True)
class Play:
    """A simulation whose first flow is observed.

    Attributes
    ----------
    name, scenario : str
        Of the run and of where it takes place.
    control : str
        What the first flow runs, a key of `data.netsim.cc.CONTROLS`.
    spec : Scenario
    seed : int
        The simulation's.
    """

    name: str
    scenario: str
    control: str
    spec: Scenario
    seed: int

    def network(self, log: bool = False) -> Network:
        """The simulation, not begun yet; ``log`` keeps its events."""
        first, *others = self.spec.flows
        flows = [first.model_copy(update={"cc": self.control}), *others]
        spec = self.spec.model_copy(update={"flows": flows})
        return Network(spec, self.control, self.seed, log=log, watch=True)


class Plays(TccoBatch):
    """A batch that plays what it is given; its agent's orders move nothing.

    Parameters
    ----------
    plays : sequence of Play
        One for each environment.
    **options
        As for `TccoBatch`.
    """

    def __init__(self, plays: Sequence[Play], **options: Any) -> None:
        super().__init__(len(plays), two_paths, **options)
        self._plays = plays

    def _network(self, i: int) -> Network:
        network = self._plays[i].network(self.keep_log)
        self._check(i, network)
        return network


def runs(plays: Sequence[Play], steps: int, settings: Settings) -> list[Run]:
    """Play all of them for as many decisions, in this thread; a run depends on its play alone.

    Parameters
    ----------
    plays : sequence of Play
    steps : int
        Decisions of each run, from when its agent would have taken over.
    settings : Settings
        Of TCCO's decisions; ``params.subflows`` and ``params.steps`` follow from what is played.
    """
    subflows = max(len(play.spec.flows[0].paths) for play in plays)
    params = settings.params.model_copy(update={"subflows": subflows, "steps": steps})
    batch = Plays(plays, reward=settings.reward, params=params, threads=1, stagger=False)
    batch.reset(0)
    begun = batch.intervals.copy()
    # What a reward looks back at has been seen before the first decision.
    heads = [batch.history(i)[-int(begun[i]) :] for i in range(len(plays))]
    seen = np.empty((steps, *batch.values.shape))
    hold = np.full(batch.actions.shape, params.reach)
    for step in range(steps):
        batch.step(hold)
        seen[step] = batch.values
    found = []
    for i, play in enumerate(plays):
        paths = int(batch.mask[i].sum())
        values = np.concatenate([heads[i], seen[:, i]])[:, :paths]
        first, segment = len(heads[i]) - 1, play.spec.flows[0].segment_bytes
        replay = replayer(settings.params, settings.reward, paths)
        rates = batch.path_bps[i, :paths]
        made = replay.decisions(values, first, int(begun[i]), segment, rates)
        found.append(run(play.name, play.control, play.scenario, values[first:-1], made))
    return found


class Senders(MaccBatch):
    """A batch of MA-CC's that watches the first flow of what it is given, as one of its senders.

    Parameters
    ----------
    plays : sequence of Play
        One for each environment, whose first flow has one path.
    **options
        As for `MaccBatch`.
    """

    def __init__(self, plays: Sequence[Play], **options: Any) -> None:
        super().__init__(len(plays), **options)
        self._plays = plays

    def _network(self, i: int) -> Network:
        return self._plays[i].network(self.keep_log)

    def _check(self, i: int, network: Network) -> None:
        """Whatever the flow runs, it is watched."""

    def _fresh(self, i: int, network: Network) -> None:
        super()._fresh(i, network)
        self.mask[i], self.flow_of[i] = True, 0

    def logged_windows(self) -> list[int]:
        """The last window that each first flow's log has."""
        found = []
        for network in self.networks:
            place = int(network.connection(0)["sub0"]) * VARIABLES + CODES["snd_cwnd"]
            found.append(int(network.state.seen[place]["last"]))
        return found


def sender_runs(plays: Sequence[Play], steps: int, settings: macc.Settings) -> list[Run]:
    """As `runs`, of flows of one path as MA-CC's senders see them."""
    more = {"senders": 1, "routers": (), "steps": steps}
    params = settings.params.model_copy(update=more)
    batch = Senders(plays, reward=settings.reward, params=params, threads=1, stagger=False)
    batch.reset(0)
    seen, windows = [batch.values[:, 0].copy()], [batch.logged_windows()]
    hold = np.full(batch.actions.shape, macc.CHANGES.index(0.0))
    for _ in range(steps):
        batch.step(hold)
        seen.append(batch.values[:, 0].copy())
        windows.append(batch.logged_windows())
    values, moved = np.stack(seen, 1), np.array(windows).T
    return [
        macc.run(play.name, play.control, play.scenario, values[i], moved[i], settings)
        for i, play in enumerate(plays)
    ]


PLAYERS: dict[str, Callable[[Sequence[Play], int, Any], list[Run]]] = {
    "tcco": runs,
    "macc": sender_runs,
}
"""Agent -> what plays controls in its place."""
