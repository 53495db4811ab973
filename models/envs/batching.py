"""The batches of all three environments share this: networks in slots, seeds, episodes, threads.

A batch is a set of arrays with a row per environment, and a compiled function that takes the
environments one by one: it acts, calls the event loop for one decision interval, observes and
rewards, without the GIL, in several threads (`models.envs.threads`). Python comes in between only
to begin an episode, which puts a new network into the slot, and to give an event loop more memory.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.netsim.event_loop import advance
from data.netsim.jit import JIT_OFF, pointer
from data.netsim.network import Network
from data.netsim.seen import CODES
from data.netsim.state import DONE, FAR, LOG, VARIABLES
from data.schema import SAMPLED
from models.envs.curriculum import Curriculum, generator
from models.envs.loop import BEGIN, IDLE, ONE_BY_ONE, PAUSED
from models.envs.samplers import Sampler
from models.envs.tcco_scenarios import log_uniform
from models.envs.threads import Shares, begin_step

Array = NDArray[Any]

_AHEAD, _MADE_AT_ONCE = 16, 2
"""Steps before its beginning in which an episode is made; how many are at a time."""
_HANDED_OVER_S = 1e-4
"""Long enough for other threads to take Python's lock once, as they do to begin."""
_GOLDEN = 0.6180339887498949
"""Multiples of it, taken modulo 1, are spread evenly however many there are."""
_SAMPLED = np.array([CODES[name] for name in SAMPLED])


class Batching(ABC):
    """Base of the batches; its arrays are those of `models.envs.batch.BatchEnv`.

    Parameters
    ----------
    num_envs : int
    sampler : Sampler
        Makes the scenario of an episode.
    controller : str
        Congestion control of the flows that don't name one.
    interval_us, steps : int
        Time between decisions, and decisions of an episode.
    kinds : sequence of int
        Kind of each part.
    threads : int, optional
        By default as many as the process may use cores.
    stagger : bool, optional
        End each environment's first episode at another step, so that they don't all begin anew
        in the same one.
    keep_log : bool, optional
        Keep each episode's events; slower.
    curriculum : Curriculum, optional
        How the sampler's ranges widen from episode to episode.
    shortest : int, optional
        Fewest decisions of an episode: each one's length is drawn between this and ``steps``,
        evenly over its logarithm, and first ones aren't cut besides.
    """

    num_envs: int
    action_counts: tuple[int, ...]
    feature_counts: tuple[int, ...]
    context: int = 1
    kept: ClassVar[tuple[str, ...]]
    """Arrays of the subclass that decide what comes next, by their attributes' names."""

    def __init__(
        self,
        num_envs: int,
        sampler: Sampler,
        controller: str,
        interval_us: int,
        steps: int,
        kinds: Sequence[int],
        threads: int | None = None,
        stagger: bool = True,
        keep_log: bool = False,
        curriculum: Curriculum | None = None,
        shortest: int | None = None,
    ) -> None:
        if shortest is not None and shortest > steps:
            raise UserError(f"shortest: {shortest} steps, but an episode has {steps} at most")
        self.num_envs = num_envs
        self.kinds = np.array(kinds, np.int64)
        # Interpreted code holds Python's lock and would gain nothing.
        threads = 1 if JIT_OFF else threads or len(os.sched_getaffinity(0))
        self.threads = max(1, min(num_envs, threads))
        self.networks: list[Network] = []
        self.interval_us, self.steps = interval_us, steps
        self.keep_log, self._curriculum, self._shortest = keep_log, curriculum, shortest
        self._sampler, self._controller, self.stagger = sampler, controller, stagger
        self._pool: ThreadPoolExecutor | None = None
        n, parts = num_envs, len(self.kinds)
        self.addresses: Array = np.zeros(n, object if JIT_OFF else np.int64)
        self.phase, self.needs = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.intervals, self.step_count = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.lengths, self.episodes = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.pauses = np.full(n, FAR)
        """Time (ns) at which an interval that is under way stands still; see `pass_on`."""
        self.own, self.first = np.zeros(n, np.int64), np.zeros(n, np.int64)
        """Connection that an environment's agent runs, and the interval in which it starts."""
        self.seed = 0
        self.actions = np.zeros((n, parts), np.int64)
        self.observations = np.zeros((n, parts, max(self.feature_counts)), np.float32)
        self.values = np.zeros(self.observations.shape)
        """Observations in their units."""
        self.mask = np.zeros((n, parts), bool)
        self.rewards = np.zeros((n, parts))
        self.terminated, self.truncated = np.zeros(n, bool), np.zeros(n, bool)
        self.started = np.zeros(n, bool)
        self._shares = Shares(n, self.threads)
        self._made: dict[int, Network] = {}
        self._samples: list[list[Array]] = [[] for _ in range(n)]
        self._sampled = np.zeros(n, np.int64)
        self._event_loop: Any = None
        self._loop: Any = None
        self._arrays: Any = None
        self._counts = np.array([self.action_counts[k] for k in self.kinds])

    def reset(self, seed: int) -> None:
        """Begin an episode everywhere; an environment's episodes depend on its number and seed."""
        self.seed = seed
        self.episodes[:] = 0
        self._made.clear()
        self.networks = [self._network(i) for i in range(self.num_envs)]
        for i in range(self.num_envs):
            self._begin(i)
        self.started[:] = True
        self._run()

    def step(self, actions: Array) -> None:
        """Act in every environment, int64 array [N, A]; see `models.envs.batch.BatchEnv`."""
        if not self.networks:
            raise UserError(f"{type(self).__name__}: no episode yet: call reset first")
        self.actions[:] = actions
        over, there = (self.terminated, self.truncated), (self._counts, self.mask)
        if not begin_step(self.actions, *there, *over, self.started, self.phase):
            raise ValueError("actions: one that its part doesn't have")
        for i in map(int, np.flatnonzero(self.started)):
            self.networks[i] = self._made.pop(i) if i in self._made else self._network(i)
            self._begin(i)
            # It simulates slow start, and may take the longest.
            self._shares.work[i] = np.iinfo(np.int64).max
        self._run()

    def put(self, networks: Sequence[Network], own: Sequence[int]) -> None:
        """Play given simulations instead of drawn ones, interval by interval; see `pass_on`.

        Parameters
        ----------
        networks : sequence of Network
            One for each environment; several may share one.
        own : sequence of int
            Connection in it that the environment's agent runs.

        Raises
        ------
        UserError
            When an environment can't be played there.
        """
        self.networks, self.own[:] = list(networks), own
        for i, network in enumerate(self.networks):
            start = int(network.connection(int(self.own[i]))["start"])
            self.first[i] = start // (self.interval_us * 1000)
            self._check(i, network)
            self._begin(i)
        self.lengths[:] = FAR
        self._arrays.settings[ONE_BY_ONE] = 1

    def pass_on(self) -> None:
        """Take every environment that isn't idle to its interval's end or to its pause before that.

        Those at a pause have ``needs`` of ``PAUSED``, and go on in the next call. Everything is
        done in this thread, so that environments may share a simulation.
        """
        self.needs[:] = DONE
        self._event_loop = self._event_loop or pointer(advance, 0, 0)
        self._shares.plan()
        self._shares.rewind()
        self._go(0)

    def arrived(self, i: int) -> bool:
        """Whether all that an environment's agent was to send has arrived."""
        return bool(self.networks[i].connection(int(self.own[i]))["done_t"] >= 0)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def samples(self, i: int) -> Array:
        """What was read at the ends of an environment's intervals, as records of a log."""
        return np.concatenate(self._samples[i]) if self._samples[i] else np.zeros(0, LOG)

    @abstractmethod
    def _check(self, i: int, network: Network) -> None:
        """Refuse a scenario that environment ``i`` can't be played in, by a `UserError`."""

    @abstractmethod
    def _fresh(self, i: int, network: Network) -> None:
        """Set the arrays' row to what it is before an episode's first interval."""

    @abstractmethod
    def places(self, i: int) -> NDArray[np.int64]:
        """Places (`data.netsim.readings`) of an environment's parts, which are sampled."""

    def _bind(self, loop: Any, settings: Mapping[str, Any], **made: Any) -> None:
        """Give a compiled loop the arrays it names, of this batch's attributes and those given.

        Parameters
        ----------
        loop : module
            With ``run``, ``Arrays`` and ``SETTINGS``.
        settings : mapping
            Values of ``SETTINGS``, but for those that all loops share.
        **made
            Arrays that are no attributes.
        """
        shared = {"interval_ns": self.interval_us * 1000, "one_by_one": self.keep_log}
        numbers = {**settings, **shared}
        made["settings"] = np.array([int(numbers[name]) for name in loop.SETTINGS])
        arrays = vars(self) | vars(self._shares) | made
        self._arrays = loop.Arrays(*(arrays[name] for name in loop.Arrays._fields))
        self._loop = loop

    def _go(self, thread: int) -> None:
        """What a thread does: go on with environments, and give them room where they need it."""
        i = -1
        while (i := self._loop.run(thread, self._event_loop, i, self._arrays)) >= 0:
            if self.needs[i] == PAUSED:
                i = -1
                continue
            network = self.networks[i]
            network.make_room(int(self.needs[i]))
            self._addressed(network)
            self.needs[i] = DONE

    def _addressed(self, network: Network) -> None:
        for k, other in enumerate(self.networks):
            if other is network:
                self.addresses[k] = network.address

    def _network(self, i: int) -> Network:
        """The network of an environment's next episode."""
        episode = int(self.episodes[i])
        rng = generator([self.seed, i, episode], self._curriculum, episode)
        spec = self._sampler(rng)
        seed = int(rng.integers(1 << 31))
        network = Network(spec, self._controller, seed, log=self.keep_log, watch=True)
        self._check(i, network)
        return network

    def _begin(self, i: int) -> None:
        network = self.networks[i]
        self.addresses[i] = network.address
        self.lengths[i] = self._length(i)
        self.episodes[i] += 1
        self.intervals[i] = self.step_count[i] = self.needs[i] = 0
        self.terminated[i] = self.truncated[i] = False
        self.actions[i] = self.rewards[i] = 0
        self.observations[i] = self.values[i] = 0
        self._samples[i], self._sampled[i] = [], 0
        self._fresh(i, network)
        self.phase[i] = BEGIN

    def _length(self, i: int) -> int:
        """Steps of the episode that an environment begins."""
        if self._shortest is not None:
            rng = np.random.default_rng([self.seed, i, int(self.episodes[i]), self._shortest])
            return round(log_uniform(rng, self._shortest, self.steps))
        if self.stagger and self.episodes[i] == 0:
            return int(np.ceil(self.steps * (1.0 - i * _GOLDEN % 1.0)))
        return self.steps

    def _run(self) -> None:
        """Go on until every environment has done its step."""
        self._event_loop = self._event_loop or pointer(advance, 0, 0)
        self._shares.plan()
        while True:
            self._shares.rewind()
            if self.threads == 1:
                self._go(0)
            else:
                self._go_together()
            if self.keep_log:
                self._keep_samples()
            if not self.phase.any():
                return

    def _go_together(self) -> None:
        """Go on in all threads, this one among them."""
        self._pool = self._pool or ThreadPoolExecutor(self.threads - 1)
        others = [self._pool.submit(self._go, thread) for thread in range(1, self.threads)]
        all_through = False
        try:
            self._make_ahead()
            self._go(0)
            all_through = self._shares.all_through()
        finally:
            if not all_through:
                # Whatever happened here, they write to arrays that must stay until then.
                wait(others)
        if not all_through:
            for other in others:
                other.result()

    def _make_ahead(self) -> None:
        """Make the networks of episodes that begin soon, while other threads simulate.

        This thread holds Python's lock, they don't; nor do they change what is read here but for
        `step_count`, which is compared alone.
        """
        soon = np.flatnonzero(self.step_count + _AHEAD >= self.lengths).tolist()
        lacking = [i for i in soon if i not in self._made][:_MADE_AT_ONCE]
        if lacking:
            time.sleep(_HANDED_OVER_S)
        for i in lacking:
            self._made[i] = self._network(i)

    def _keep_samples(self) -> None:
        """Keep what the compiled function has read at the end of the intervals just past."""
        for i, network in enumerate(self.networks):
            if self.phase[i] not in (IDLE, BEGIN) or self._sampled[i] == self.intervals[i]:
                continue
            self._sampled[i] = self.intervals[i]
            end = int(self.intervals[i]) * self.interval_us * 1000 - 1
            rows = [
                (end, place, code, cell["last"])
                for place in self.places(i)
                for code in _SAMPLED
                if (cell := network.state.seen[place * VARIABLES + code])["n"] > 0
            ]
            self._samples[i].append(np.array(rows, LOG))

    def get_state(self) -> dict[str, Any]:
        """All that decides what comes next."""
        names = (*_KEPT, *self.kept)
        return {
            "seed": self.seed,
            **{name: getattr(self, name).copy() for name in names},
            "networks": [network.saved() for network in self.networks],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where `get_state` was called, to the bit."""
        self.seed = int(state["seed"])
        self._made.clear()
        for name in (*_KEPT, *self.kept):
            getattr(self, name)[...] = state[name]
        self.episodes -= 1
        self.networks = [self._network(i) for i in range(self.num_envs)]
        self.episodes += 1
        for i, (network, arrays) in enumerate(zip(self.networks, state["networks"], strict=True)):
            network.restore(arrays)
            self.addresses[i] = network.address


_KEPT = ("phase", "intervals", "step_count", "lengths", "episodes", "observations", "values",
         "mask", "rewards", "terminated", "truncated", "started")  # fmt: skip
