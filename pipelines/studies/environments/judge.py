"""Plays scripted policies in the environments, all on the same episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.student import quantile
from models.envs.batching import Batching
from models.envs.macc import MaccBatch, MaccParams
from models.envs.macc_scenarios import greedy_neighbours, many_senders
from models.envs.nuwa import NuwaBatch
from models.envs.samplers import (
    SUBFLOWS,
    Sampler,
    alternating,
    dumbbell,
    mixed_paths,
    named,
    served_paths,
    two_paths,
    wireless,
)
from models.envs.scripted import (
    Policy,
    at_random,
    macc_policy,
    nuwa_hold,
    nuwa_thresholds,
    tcco_constant,
    tcco_hold,
    tcco_tracking,
    with_k,
)
from models.envs.tcco import TccoBatch

RANDOM, HOLD, CONSTANT, SCRIPT, AGENT = "random", "hold", "constant", "script", "agent"

DROP_ABOVE = 300
"""Packets: 0.12 s of MA-CC's core, and less than the 500 that it serves in a step."""

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
    mbps, rtt_ms : float64 array [seeds]
        Goodput of the agents' flows together, and the mean RTT of their ACKs.
    """

    name: str
    kind: str
    returns: NDArray[np.float64]
    mbps: NDArray[np.float64]
    rtt_ms: NDArray[np.float64]


def _tcco(sampler: Sampler, subflows: int = 2) -> list[Played]:
    def make(n: int) -> Batching:
        return TccoBatch(n, sampler, params={"subflows": subflows}, stagger=False)

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
        *((f"thresholds, {low:g} of T_d", SCRIPT, make, lambda low=low: nuwa_thresholds(low))
          for low in (0.0, 0.1, 0.2)),
        *((f"above T_d or below {ms} ms", SCRIPT, make,
           lambda ms=ms: nuwa_thresholds(0.0, 1e3 * ms)) for ms in (1, 2, 4)),
    ]  # fmt: skip


def _losing(sampler: Sampler, lossy: bool) -> Sampler:
    """The scenarios whose first link loses packets at random, or those of which none does."""

    def sample(rng: np.random.Generator) -> Any:
        while True:
            spec = sampler(rng)
            if (next(iter(spec.links.values())).loss > 0) is lossy:
                return spec

    return sample


def _macc(sampler: Sampler, windows: tuple[int, ...], drops: tuple[int, ...]) -> list[Played]:
    make, codel = _team(sampler, "agent"), _team(sampler, "codel")
    middle = windows[len(windows) // 2]
    return [
        (RANDOM, RANDOM, make, lambda: at_random(1)),
        (HOLD, HOLD, make, lambda: macc_policy(None)),
        *((f"{w} segments", CONSTANT, make, lambda w=w: macc_policy(w)) for w in windows),
        (f"{middle} segments, CoDel", SCRIPT, codel, lambda: macc_policy(middle)),
        *((f"{middle} segments, drop above {d} packets", SCRIPT, make,
           lambda d=d: macc_policy(middle, d)) for d in drops),
    ]  # fmt: skip


def _macc_routers(
    name: str, sampler: Sampler, senders: int, windows: tuple[int, ...]
) -> dict[str, list[Played]]:
    """One router rule against never dropping, and the same against CoDel, at the same windows.

    The constants are windows, in the first problem with routers that never drop, in the second
    behind CoDel: so the rule stands beside the best window of each.
    """
    make, codel, pie = (_team(sampler, queue, senders) for queue in ("agent", "codel", "pie"))
    middle = windows[len(windows) // 2]
    dropping: list[Played] = [
        (f"{w} segments, drop above {DROP_ABOVE} packets", SCRIPT, make, _held(w, DROP_ABOVE))
        for w in windows
    ]
    return {
        name: [
            (RANDOM, RANDOM, make, lambda: at_random(1)),
            (HOLD, HOLD, make, lambda: macc_policy(None)),
            *((f"{w} segments", CONSTANT, make, _held(w)) for w in windows),
            *dropping,
        ],
        f"{name} behind CoDel": [
            *((f"{w} segments, CoDel", CONSTANT, codel, _held(w)) for w in windows),
            *dropping,
            (f"{middle} segments, PIE", SCRIPT, pie, _held(middle)),
        ],
    }


def _held(window: int, drop_above: float = np.inf) -> Callable[[], Policy]:
    return lambda: macc_policy(window, drop_above)


def _team(sampler: Sampler, queue: str, senders: int = 3) -> Maker:
    params = MaccParams(senders=senders, watch_other_queues=queue != "agent")
    return lambda n: MaccBatch(n, _with_queue(sampler, queue), params=params, stagger=False)


def _with_queue(sampler: Sampler, queue: str) -> Sampler:
    def sample(rng: np.random.Generator) -> Any:
        spec = sampler(rng)
        core = spec.links["core"].model_copy(update={"queue": queue})
        return spec.model_copy(update={"links": {**spec.links, "core": core}})

    return sample


PROBLEMS: dict[str, list[Played]] = {
    "TCCO, alternating": _tcco(alternating),
    "TCCO, two_paths": _tcco(two_paths),
    "TCCO, mixed_paths": _tcco(mixed_paths),
    "TCCO, served_paths": _tcco(served_paths, SUBFLOWS["served_paths"]),
    "Nuwa, wireless": _nuwa(wireless),
    "Nuwa, wireless, no loss": _nuwa(_losing(wireless, lossy=False)),
    "Nuwa, wireless, loss": _nuwa(_losing(wireless, lossy=True)),
    "MA-CC, dumbbell": _macc(dumbbell(), (150, 200, 235, 260, 300), (150, 250)),
    **_macc_routers("MA-CC, greedy_neighbours", greedy_neighbours, 3, (150, 250, 350, 500, 700)),
    **_macc_routers("MA-CC, many_senders", many_senders, 8, (25, 50, 100, 150)),
}
"""Environment and scenarios -> the policies that are played in it."""
KINDS = {"tcco": "TCCO", "nuwa": "Nuwa", "macc": "MA-CC"}
"""Agent -> how the names of its problems begin."""
_BY_HAND: dict[str, Callable[[str], list[Played]]] = {
    "tcco": lambda sampler: _tcco(named(sampler), SUBFLOWS.get(sampler, 2)),
    "nuwa": lambda sampler: _nuwa(named(sampler)),
    "macc": lambda sampler: _macc(named(sampler), (150, 200, 235, 260, 300), (150, 250)),
}


def by_hand(agent: str, sampler: str) -> list[Played]:
    """Policies by hand for an agent's scenarios: those of `PROBLEMS`, or the same elsewhere.

    Parameters
    ----------
    agent : str
        A key of `KINDS`.
    sampler : str
        As `models.envs.samplers.named` takes it.
    """
    return PROBLEMS.get(f"{KINDS[agent]}, {sampler}") or _BY_HAND[agent](sampler)


def trained(folders: Sequence[Path]) -> dict[str, list[Played]]:
    """Rows of trained networks, each for the environments of its kind with as many parts.

    A comparison that has an environment of its own is played in that, beside the first problem of
    its kind: throughput and RTT compare there, returns don't.

    Parameters
    ----------
    folders : sequence of Path
        Those that ``cczoo train`` wrote; see `models.rl.policy.kept`.

    Returns
    -------
    dict
        Name of a problem -> its rows.

    Raises
    ------
    UserError
        When a folder holds no training, or one of an agent without a problem.
    """
    found: dict[str, list[Played]] = {name: [] for name in PROBLEMS}
    if not folders:
        return found
    from models.rl import agents
    from models.rl.policy import Greedy, kept
    from models.rl.runner import make

    for folder in folders:
        agent, params, module = kept(folder)
        kind = KINDS.get(agent.partition("-")[0])
        if kind is None:
            raise UserError(
                f"{folder}: {agent} isn't one of {', '.join(KINDS)}, nor compared to one"
            )
        label = f"{agent}, {_steps(folder)} steps, seed {params.seed}"
        line = agents.agent(agent)
        if "env" in line.preset:
            first = next(name for name in PROBLEMS if name.startswith(kind))
            judged = {k: v for k, v in params.env.items() if k not in line.training_only}
            own_maker = partial(alone, line.maker, judged)
            found[first].append((label, AGENT, own_maker, partial(Greedy, module)))
            continue
        own = sorted(set(params.env.get("params") or {}) - {"steps"})
        if own:
            raise UserError(
                f"{folder}: was trained with env.params.{own[0]} of its own: environments are "
                "played as they are by default"
            )
        parts = len(make(line.maker, 1, 1, params.env).kinds)
        for name, rows in PROBLEMS.items():
            # Behind CoDel an agent has nothing to say.
            if name.startswith(kind) and rows[0][1] == RANDOM:
                maker = rows[0][2]
                if len(maker(1).kinds) == parts:
                    found[name].append((label, AGENT, maker, partial(Greedy, module)))
    return found


def alone(maker: str, settings: dict[str, Any], n: int) -> Batching:
    """Environments as a training had them, whose first episodes are whole.

    Parameters
    ----------
    maker : str
        As `models.rl.runner.make` takes it.
    settings : dict
        The training's ``env``, without what only training has.
    n : int
        How many.
    """
    from models.rl.runner import make

    batch = cast(Batching, make(maker, n, 1, settings))
    batch.stagger = False
    return batch


def _steps(folder: Path) -> int:
    """Steps that a training has done."""
    from models.rl import checkpoint

    found = checkpoint.latest(folder)
    return int(found.name.removeprefix("checkpoint-")) if found else 0


def play(played: Played, seeds: int, steps: int | None = None, seed: int = 0) -> Result:
    """One policy, for an episode of each seed.

    Parameters
    ----------
    played : tuple
        From `PROBLEMS`.
    seeds : int
    steps : int, optional
        By default a whole episode.
    seed : int
        Which episodes: those that environments begin with after a reset with it.
    """
    name, kind, make, policy = played
    batch, act = make(seeds), policy()
    try:
        batch.reset(seed)
        total = np.zeros(seeds)
        count = min(steps or batch.steps, batch.steps)
        for _ in range(count):
            batch.step(act(batch))
            total += batch.rewards.sum(axis=1)
        mbps, rtt_ms = np.array([_measured(batch, i) for i in range(seeds)]).T
    finally:
        batch.close()
    return Result(name, kind, total / count, mbps, rtt_ms)


def _measured(batch: Batching, i: int) -> tuple[float, float]:
    """Goodput (Mbps) and RTT (ms) of the agents' flows in an environment, since its start."""
    network = batch.networks[i]
    subs = network.state.sub
    mine = batch.places(i)[batch.places(i) < len(subs)]
    # Where agents run routers alone, all flows are theirs to serve.
    subs = subs[mine] if len(mine) else subs[:]
    conns = network.state.conn[np.unique(subs["conn"])]
    data = float((conns["data_rcv"] * conns["payload"]).sum())
    rtt = float(subs["rtt_sum"].sum()) / max(1, int(subs["rtt_n"].sum())) / 1e6
    return 8e-6 * data / network.now_s, rtt


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean over seeds and half of its 95 % interval (Student's t)."""
    spread = float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()), quantile(0.95, len(values) - 1) * spread
