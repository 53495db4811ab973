"""Let agents play in given simulations, side by side with everything else that runs in them.

A batch's compiled loop acts, simulates an interval and observes. Here it does so in simulations
that are given instead of drawn. It stands still where somebody wants to look, and where an action
that comes late is to take effect, so that the simulation's metrics are those of
`data.netsim.metrics`, sampled at the very same times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.metrics import Looks
from data.netsim.network import Network
from data.netsim.state import FAR
from models.envs.batching import Batching
from models.envs.loop import ACT, BEGIN, IDLE, PAUSED

LEVERS = (("sub", "agent_cwnd"), ("sub", "agent_k"), ("link", "agent_p"))
"""Fields of a simulation by which agents act: array of records, field."""


class Scene:
    """One simulation, with the environments of a batch that play in it.

    Parameters
    ----------
    network : Network
        Not begun yet.
    slots : sequence of int
        Numbers of the environments.
    delay_ns : int
        How long after an observation its action takes effect.
    """

    def __init__(self, network: Network, slots: Sequence[int], delay_ns: int) -> None:
        self.network, self.slots, self.looks = network, list(slots), Looks(network)
        self._delay_ns = delay_ns
        self._stops: list[tuple[int, Callable[[], None]]] = []
        self._levers = [getattr(network.state, array)[field] for array, field in LEVERS]
        self._before = self._after = self._copied()

    @property
    def over(self) -> bool:
        """Whether all has been looked at."""
        return self.looks.taken == len(self.looks.times_ns)

    @property
    def pause_ns(self) -> int:
        """When it must stand still next."""
        return self._stops[0][0] if self._stops else FAR

    def begin(self, start: int, end: int) -> None:
        """Plan an interval, ``[start, end)`` in ns."""
        stops = []
        if self._delay_ns or len(self.slots) > 1:
            # All act before any of them goes on to simulate.
            stops.append((start - 1, self._hold))
        if self._delay_ns:
            stops.append((start + self._delay_ns - 1, self._apply))
        ahead = self.looks.times_ns[self.looks.taken :]
        stops += [(time, self.looks.look) for time in ahead if time < end - 1]
        self._stops = sorted(stops, key=lambda stop: stop[0])
        self._before = self._copied()

    def stop(self) -> None:
        """Do what it stands still for."""
        self._stops.pop(0)[1]()

    def finish(self) -> None:
        """Go on to the end without agents."""
        while not self.over:
            self.network.advance_ns(self.looks.times_ns[self.looks.taken])
            self.looks.look()

    def _copied(self) -> list[NDArray[Any]]:
        return [lever.copy() for lever in self._levers]

    def _set(self, values: Sequence[NDArray[Any]]) -> None:
        for lever, value in zip(self._levers, values, strict=True):
            lever[:] = value

    def _hold(self) -> None:
        if self._delay_ns:
            self._after = self._copied()
            self._set(self._before)

    def _apply(self) -> None:
        self._set(self._after)


class Stage:
    """Plays a policy in simulations until all of them are over.

    Parameters
    ----------
    batch : Batching
        With an environment for each agent.
    networks : sequence of Network
        Simulation of each environment; those of one simulation share it.
    own : sequence of int
        Connection that each environment's agent runs.
    delay_us : int, optional
        How long after an observation its action takes effect; less than an interval.

    Raises
    ------
    UserError
        When an agent can't be played in its simulation.
    """

    def __init__(
        self,
        batch: Batching,
        networks: Sequence[Network],
        own: Sequence[int],
        delay_us: int = 0,
    ) -> None:
        self.batch, self.decisions = batch, 0
        batch.put(networks, own)
        distinct = {id(network): network for network in networks}
        self.scenes = [
            Scene(network, [i for i, other in enumerate(networks) if other is network],
                  delay_us * 1000)
            for network in distinct.values()
        ]  # fmt: skip
        self._begun = np.zeros(batch.num_envs, bool)
        self._interval = 0

    def play(self, policy: Callable[[Any], NDArray[np.int64]]) -> list[dict[str, Any]]:
        """Play to the end; metrics of each simulation, in the order of the first mention.

        Parameters
        ----------
        policy : callable
            Takes the batch, returns actions, int64 array [N, A]. It is asked when at least one
            environment has an observation to act on; ``batch.started`` tells which of them act
            for the first time, ``batch.phase`` is 1 of those that act.
        """
        while scenes := [scene for scene in self.scenes if not scene.over]:
            self._one_interval(scenes, policy)
        return [scene.looks.metrics() for scene in self.scenes]

    def _one_interval(
        self, scenes: list[Scene], policy: Callable[[Any], NDArray[np.int64]]
    ) -> None:
        batch, length = self.batch, self.batch.interval_us * 1000
        start, self._interval = self._interval * length, self._interval + 1
        batch.phase[:] = IDLE
        for scene in scenes:
            slots = [i for i in scene.slots if not batch.arrived(i)]
            if not slots or scene.looks.times_ns[-1] <= start:
                scene.finish()
                continue
            scene.begin(start, start + length)
            batch.phase[slots] = np.where(self._begun[slots], ACT, BEGIN)
        acting = int((batch.phase == ACT).sum())
        if acting:
            batch.actions[:] = policy(batch)
            self.decisions += acting
        batch.started[:] = False
        self._simulate(scenes)

    def _simulate(self, scenes: list[Scene]) -> None:
        """Take all to the interval's end, with a halt wherever somebody looks or acts late."""
        batch = self.batch
        under_way = batch.phase != IDLE
        while under_way.any():
            for scene in scenes:
                batch.pauses[scene.slots] = scene.pause_ns
            batch.pass_on()
            paused = batch.needs == PAUSED
            done = under_way & ~paused
            through = done & (batch.phase == IDLE) & ~self._begun
            batch.started |= through
            self._begun |= through
            batch.phase[done] = IDLE
            for scene in scenes:
                if paused[scene.slots].any():
                    scene.stop()
            under_way = paused
