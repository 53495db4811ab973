"""TCCO's environment goes through observations that are given, whatever control set the windows.

Its own compiled functions say when its agent would have taken over, how far an action would have
gone, which rule of the reward holds, and what the step has earned. The observations are of a log,
or of a simulation in which any control runs in place of an agent.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.jit import entry, inlined
from data.netsim.state import record, zeros
from features import tcco
from models.envs import tcco_loop
from models.envs.samplers import two_paths
from models.envs.tcco import TccoBatch, TccoParams
from models.envs.tcco_reward import TccoReward

SOURCES = ("features/intervals.py", "features/tcco.py", "models/envs/loop.py",
           "models/envs/tcco_reward.py", "models/envs/tcco_loop.py")  # fmt: skip
"""What is compiled into this file's entry points besides the simulator."""

Float = NDArray[np.float64]
Simulation = namedtuple("Simulation", "conn sub")
"""What the environment's functions read and write of a simulation's state."""
_CONNECTION = record(sub0="i8", sub_n="i8", payload="i8", done_t="i8")
_SUBFLOW = record(cwnd="i8", ca_state="i8", agent_cwnd="i8")


@dataclass(frozen=True)
class Replayed:
    """Decisions of T steps and S subflows.

    Attributes
    ----------
    action : int8 array [T, S]
        The agent's action that is nearest to what the control did.
    change : float64 array [T, S]
        What it did to the window, in units of the agent's delta (`TccoParams.step_share`).
    reward : float64 array [T, S]
    """

    action: NDArray[np.int8]
    change: Float
    reward: Float


class Replay:
    """Goes through the observations of one connection after another.

    Parameters
    ----------
    params : TccoParams
    reward : TccoReward
    subflows : int
        As many as the connections have.
    """

    def __init__(self, params: TccoParams, reward: TccoReward, subflows: int) -> None:
        own = params.model_copy(update={"subflows": subflows})
        # Only its arrays are used: nothing is simulated.
        self._batch = TccoBatch(1, two_paths, reward, own, 1, stagger=False)
        self._arrays: Any = self._batch._arrays
        self._state = Simulation(zeros(1, _CONNECTION), zeros(subflows, _SUBFLOW))
        self._state.conn["sub_n"], self._state.conn["done_t"] = subflows, -1

    def taken_over(self, values: Float, states: NDArray[np.int64]) -> int:
        """How many intervals go by before the agent would be in charge; -1 if it never is.

        Parameters
        ----------
        values : float64 array [n, S, 6]
            `features.tcco.FEATURES` of every interval.
        states : int64 array [n, S]
            Congestion state at each interval's end.
        """
        self._clear(1)
        return int(_taken_over(self._arrays, self._state, values, states))

    def decisions(
        self,
        values: Float,
        first: int,
        begun: int,
        segment_bytes: int,
        path_bps: Float | None = None,
        actions: NDArray[np.int64] | None = None,
    ) -> Replayed:
        """Decisions of a run.

        Parameters
        ----------
        values : float64 array [n, S, 6]
            Observations, those before the first decision among them: rewards look back.
        first : int
            Row of the first decision; decisions are taken in all rows from it on but the last.
        begun : int
            Intervals that have gone by up to that row.
        segment_bytes : int
            Payload of a full segment.
        path_bps : float64 array [S], optional
            What the paths carry; unknown without it, so that the highest rate seen stands in.
        actions : int64 array [T, S], optional
            Actions that an agent has taken, in place of those read from the windows.
        """
        self._clear(segment_bytes)
        self._batch.intervals[0] = begun
        steps, paths = max(0, len(values) - 1 - first), values.shape[1]
        self._batch.path_bps[0] = 0.0 if path_bps is None else path_bps
        taken = np.zeros((steps, paths), np.int64) if actions is None else actions.copy()
        change, reward = np.zeros((steps, paths)), np.zeros((steps, paths))
        given = actions is not None
        numbers = self._arrays, self._state, np.array(values), first, given
        _decided(*numbers, taken, change, reward)
        return Replayed(taken.astype(np.int8), change, reward)

    def _clear(self, segment_bytes: int) -> None:
        batch = self._batch
        for name in ("ring", "cursor", "intervals", "first", "step_count", "draining", "own"):
            getattr(batch, name)[:] = 0
        batch.targets[:], batch.lengths[:] = -1, np.iinfo(np.int64).max
        self._state.conn["payload"] = segment_bytes


@entry
def _taken_over(A: Any, S: Any, values: Any, states: Any) -> int:
    for n in range(len(values)):
        A.intervals[0] = n + 1
        for k in range(values.shape[1]):
            S.sub[k].cwnd = int(values[n, k, tcco.CWND])
            S.sub[k].ca_state = states[n, k]
        last = n + 1 >= A.settings[tcco_loop._START_INTERVALS]
        if tcco_loop._take_over(A, S, 0, last):
            return n
    return -1


@entry
def _decided(
    A: Any, S: Any, values: Any, first: int, given: bool, actions: Any, change: Any, reward: Any
) -> None:
    reach, paths = A.settings[tcco_loop._REACH], values.shape[1]
    for n in range(max(0, first - A.ring.shape[1]), first + 1):
        _see(A, values, n)
    for k in range(paths):
        A.targets[0, k] = int(values[first, k, tcco.CWND])
    for t in range(len(actions)):
        n = first + t
        # The environment sets the bounds of a step before it counts the step before it.
        A.step_count[0] = max(0, t - 1)
        for k in range(paths):
            now = A.values[0, k]
            tcco_loop._limit(A, 0, k, tcco_loop._held(now, S.conn[0].payload))
            moved = values[n + 1, k, tcco.CWND] - now[tcco.CWND]
            change[t, k] = moved / A.unit[0, k]
            if not given:
                A.targets[0, k] = int(now[tcco.CWND])
                nearest = int(np.rint(min(float(reach), max(-float(reach), change[t, k]))))
                actions[t, k] = nearest + reach
            A.actions[0, k] = actions[t, k]
        A.step_count[0] = t
        tcco_loop._act(A, S, 0)
        A.intervals[0] += 1
        _see(A, values, n + 1)
        tcco_loop._settle(A, S, 0)
        for k in range(paths):
            reward[t, k] = A.rewards[0, k]


@inlined
def _see(A: Any, values: Any, n: int) -> None:
    """Put an interval's observations where the environment's functions look for them."""
    A.cursor[0] = (A.cursor[0] + 1) % A.ring.shape[1]
    for k in range(values.shape[1]):
        for name in range(values.shape[2]):
            A.values[0, k, name] = values[n, k, name]
            A.ring[0, A.cursor[0], k, name] = values[n, k, name]
