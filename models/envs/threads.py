"""Shares of threads: which of a batch's environments each simulates, anew in every step.

A thread begins with the environments that it had in the step before, whose simulations may still
lie in its core's cache, and takes the longest of them first, or the last would keep everybody
waiting. A thread that is through with its own takes others', the shortest first: those that their
thread comes to last. Whatever the shares, results are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from data.netsim.jit import entry
from data.netsim.reference import add
from models.envs.loop import ACT, BEGIN

SOURCES = ("models/envs/loop.py",)
"""What is compiled into this file's entry points besides the simulator."""

_PADDING = 8
"""Words of a cache line: threads' own counters don't share one."""
_LOOKS = 20_000
"""How often `all_through` looks, a fraction of a millisecond: waking a thread takes as long."""


class Shares:
    """The arrays by which threads share out the environments; `models.envs.loop` reads them.

    Attributes
    ----------
    work : int64 array [N]
        Packet events of each environment's last step.
    home : int64 array [N]
        Thread that had it last.
    order : int64 array [T, N]
        In which order each thread looks at the environments.
    cursors : int64 array [T, 8]
        How many of them it has looked at.
    claims : int64 array [N]
        How many threads have wanted it: who adds the first has it.
    through : int64 array [1]
        How many threads have found nothing left.
    """

    def __init__(self, num_envs: int, threads: int) -> None:
        self.work, self.ranking = np.zeros(num_envs, np.int64), np.arange(num_envs)
        self.home = np.arange(num_envs) % threads
        self.order = np.zeros((threads, num_envs), np.int64)
        self.cursors = np.zeros((threads, _PADDING), np.int64)
        self.claims, self.through = np.zeros(num_envs, np.int64), np.zeros(1, np.int64)

    def plan(self) -> None:
        """Order the environments of every thread's step."""
        _plan(self.work, self.ranking, self.home, self.order)

    def rewind(self) -> None:
        """Let the threads look at all environments again."""
        self.cursors[:] = self.claims[:] = self.through[:] = 0

    def all_through(self) -> bool:
        """Whether all threads find nothing left, now or within a fraction of a millisecond."""
        return bool(_all_through(self.through, len(self.order)))


@entry
def _plan(work: Any, ranking: Any, home: Any, order: Any) -> None:
    # From one step to the next little changes places: insertion sort.
    for a in range(1, len(ranking)):
        moved, b = ranking[a], a
        while b > 0 and work[ranking[b - 1]] < work[moved]:
            ranking[b] = ranking[b - 1]
            b -= 1
        ranking[b] = moved
    n = len(ranking)
    for thread in range(len(order)):
        k = 0
        for a in range(n):
            if home[ranking[a]] == thread:
                order[thread, k] = ranking[a]
                k += 1
        for a in range(n):
            if home[ranking[n - 1 - a]] != thread:
                order[thread, k] = ranking[n - 1 - a]
                k += 1
    work[:] = 0


@entry
def _all_through(through: Any, threads: int) -> bool:
    looks = 0
    while looks < _LOOKS and add(through, 0, 0) < threads:
        looks += 1
    return looks < _LOOKS


@entry
def begin_step(
    actions: Any, counts: Any, mask: Any, terminated: Any, truncated: Any, started: Any, phase: Any
) -> bool:
    """Say which environments begin anew and have all others act; False for an unknown action.

    Actions are an int64 array [N, A], their numbers an int64 array [A]; of parts that aren't there
    they are ignored.
    """
    known = True
    for i in range(len(phase)):
        started[i] = terminated[i] or truncated[i]
        phase[i] = BEGIN if started[i] else ACT
        if not started[i]:
            for k in range(len(counts)):
                known &= not mask[i, k] or 0 <= actions[i, k] < counts[k]
    return known
