"""Plays scripted policies in the environments, all on the same episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.student import quantile
from models.envs.batching import Batching
from models.envs.macc import MaccBatch, MaccParams
from models.envs.nuwa import NuwaBatch
from models.envs.samplers import (
    Sampler,
    alternating,
    dumbbell,
    greedy_neighbours,
    two_paths,
    wireless,
)
from models.envs.scripted import (
    NuwaThresholds,
    Policy,
    at_random,
    macc_policy,
    nuwa_hold,
    tcco_constant,
    tcco_hold,
    tcco_tracking,
    with_k,
)
from models.envs.tcco import TccoBatch

RANDOM, HOLD, CONSTANT, SCRIPT = "random", "hold", "constant", "script"

Maker = Callable[[int], Batching]
Played = tuple[str, str, Maker, Callable[[], Policy]]
"""Name of a policy, its kind, what makes its environments, what makes the policy."""


@dataclass(frozen=True)
class Result:
    """What a policy got.

    Attributes
    ----------
    name, kind : str
    returns : float64 array [seeds]
        Mean reward of a step, a team's together.
    mbps, rtt_ms : float
        Goodput of the agents' flows together, and the mean RTT of their ACKs.
    """

    name: str
    kind: str
    returns: NDArray[np.float64]
    mbps: float
    rtt_ms: float


def _tcco(sampler: Sampler) -> list[Played]:
    def make(n: int) -> Batching:
        return TccoBatch(n, sampler, stagger=False)

    windows = (50, 100, 150, 180, 200, 220, 250, 300, 600)
    return [
        (RANDOM, RANDOM, make, lambda: at_random(1)),
        (HOLD, HOLD, make, lambda: tcco_hold),
        *((f"{w} segments", CONSTANT, make, lambda w=w: tcco_constant(w)) for w in windows),
        *((f"track, {s:g} of what the path holds", SCRIPT, make, lambda s=s: tcco_tracking(s))
          for s in (1.0, 1.25, 1.5)),
    ]  # fmt: skip


def _nuwa(sampler: Sampler) -> list[Played]:
    def make(n: int, k: float | None = None) -> Batching:
        return NuwaBatch(n, sampler if k is None else with_k(sampler, k), stagger=False)

    return [
        (RANDOM, RANDOM, make, lambda: at_random(1)),
        (HOLD, HOLD, make, lambda: nuwa_hold),
        *((f"k {k}", CONSTANT, lambda n, k=k: make(n, float(k)), lambda: nuwa_hold)
          for k in range(1, 10)),
        *((f"thresholds, {low:g} of T_d", SCRIPT, make, lambda low=low: NuwaThresholds(low))
          for low in (0.0, 0.1, 0.2)),
        *((f"above T_d or below {ms} ms", SCRIPT, make, lambda ms=ms: NuwaThresholds(0.0, 1e3 * ms))
          for ms in (1, 2, 4)),
    ]  # fmt: skip


def _losing(sampler: Sampler, packets: bool) -> Sampler:
    """The scenarios whose first link loses packets at random, or those where none does."""

    def sample(rng: np.random.Generator) -> Any:
        while True:
            spec = sampler(rng)
            if (next(iter(spec.links.values())).loss > 0) is packets:
                return spec

    return sample


def _macc(sampler: Sampler, windows: tuple[int, ...], drops: tuple[int, ...]) -> list[Played]:
    def make(n: int) -> Batching:
        return MaccBatch(n, sampler, stagger=False)

    def codel(n: int) -> Batching:
        params = MaccParams(watch_other_queues=True)
        return MaccBatch(n, _with_queue(sampler, "codel"), params=params, stagger=False)

    middle = windows[len(windows) // 2]
    return [
        (RANDOM, RANDOM, make, lambda: at_random(1)),
        (HOLD, HOLD, make, lambda: macc_policy(None)),
        *((f"{w} segments", CONSTANT, make, lambda w=w: macc_policy(w)) for w in windows),
        (f"{middle} segments, CoDel", SCRIPT, codel, lambda: macc_policy(middle)),
        *((f"{middle} segments, drop above {d} packets", SCRIPT, make,
           lambda d=d: macc_policy(middle, d)) for d in drops),
    ]  # fmt: skip


def _with_queue(sampler: Sampler, queue: str) -> Sampler:
    def sample(rng: np.random.Generator) -> Any:
        spec = sampler(rng)
        core = spec.links["core"].model_copy(update={"queue": queue})
        return spec.model_copy(update={"links": {**spec.links, "core": core}})

    return sample


PROBLEMS: dict[str, list[Played]] = {
    "TCCO, alternating": _tcco(alternating),
    "TCCO, two_paths": _tcco(two_paths),
    "Nuwa, wireless": _nuwa(wireless),
    "Nuwa, wireless, no loss": _nuwa(_losing(wireless, packets=False)),
    "Nuwa, wireless, loss": _nuwa(_losing(wireless, packets=True)),
    "MA-CC, dumbbell": _macc(dumbbell(), (150, 200, 235, 260, 300), (150, 250)),
    "MA-CC, greedy_neighbours": _macc(greedy_neighbours, (100, 150, 235, 300, 400), (150, 250)),
}
"""Environment and scenarios -> the policies that are played in it."""


def play(played: Played, seeds: int, steps: int | None = None) -> Result:
    """One policy, for an episode of each seed.

    Parameters
    ----------
    played : tuple
        From `PROBLEMS`.
    seeds : int
    steps : int, optional
        By default a whole episode.
    """
    name, kind, make, policy = played
    batch, act = make(seeds), policy()
    try:
        batch.reset(0)
        total = np.zeros(seeds)
        count = min(steps or batch.steps, batch.steps)
        for _ in range(count):
            batch.step(act(batch))
            total += batch.rewards.sum(axis=1)
        mbps, rtt_ms = np.mean([_measured(batch, i) for i in range(seeds)], axis=0)
    finally:
        batch.close()
    return Result(name, kind, total / count, float(mbps), float(rtt_ms))


def _measured(batch: Batching, i: int) -> tuple[float, float]:
    """Goodput (Mbps) and RTT (ms) of the agents' flows in an environment, since its start."""
    network = batch.networks[i]
    subs = network.state.sub[batch.places(i)[batch.places(i) < len(network.state.sub)]]
    conns = network.state.conn[np.unique(subs["conn"])]
    data = float((conns["data_rcv"] * conns["payload"]).sum())
    rtt = float(subs["rtt_sum"].sum()) / max(1, int(subs["rtt_n"].sum())) / 1e6
    return 8e-6 * data / network.now_s, rtt


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean over seeds and half of its 95 % interval (Student's t)."""
    spread = float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()), quantile(0.95, len(values) - 1) * spread
