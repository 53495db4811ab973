"""Agent steps per second of the environments, and their share of the bare simulator's speed.

Ends with 1 where a share or the gain of a second thread is below what is aimed at.

A batch takes random actions; beside it, in the same run and step by step, the event loop alone
advances the same networks by the same intervals under the same controls. What the batch takes
longer is what acting, observing and rewarding cost. Two threads are compared with one on batches
of the same seed, and with what two batches that share nothing gain side by side: that is what the
machine has to give. PCC-RL's own simulator made 315 to 547 steps a second on one core, moving a
fluid through one queue per monitor interval; here every packet and every ACK of a step is
simulated.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from data.netsim.jit import entry
from data.netsim.network import Network
from data.netsim.reference import call
from data.netsim.state import DONE
from models.envs.batching import Batching
from models.envs.macc import MaccBatch
from models.envs.nuwa import NuwaBatch
from models.envs.samplers import alternating, two_paths
from models.envs.scripted import Policy, at_random
from models.envs.tcco import TccoBatch

PCC_RL_STEPS_PER_S = (315, 547)
_OF_MACHINE = 0.95
"""Where a machine gives less, two threads should gain this share of it."""
_APART = 8
"""Steps that two separate batches take without waiting for each other."""
CONTROLS = {"sub": ("agent_cwnd", "agent_k"), "link": ("agent_p",)}
"""Fields of the state through which agents act."""

Maker = Callable[[int, int], Batching]
MAKERS: dict[str, Maker] = {
    "TCCO, 2 x 400-500 Mbps": lambda n, threads: TccoBatch(n, alternating, threads=threads),
    "TCCO, 20-500 Mbps": lambda n, threads: TccoBatch(n, two_paths, threads=threads),
    "Nuwa, 3-150 Mbps": lambda n, threads: NuwaBatch(n, threads=threads),
    "MACC": lambda n, threads: MaccBatch(n, threads=threads),
}


@entry
def advance_all(event_loop: Any, addresses: Any, until: Any, needs: Any) -> int:
    """The bare simulator: every network to its time; how many have to be called again."""
    waiting = 0
    for i in range(len(addresses)):
        needs[i] = call(event_loop, addresses[i], until[i])
        if needs[i] != DONE:
            waiting += 1
    return waiting


class Bare:
    """The networks of a batch again, advanced without any agent."""

    def __init__(self, batch: Batching) -> None:
        self.batch = batch
        self.networks = [batch._network(i) for i in range(batch.num_envs)]
        self.episodes = batch.episodes.copy()
        self.cpu_s = 0.0
        for i in range(batch.num_envs):
            self.follow(i)

    def follow(self, i: int) -> None:
        """Take over the present state of a network whose episode has just begun."""
        theirs = self.batch.networks[i]
        mine = Network(theirs.scenario, "agent")
        mine.restore(theirs.saved())
        mine.state.g["log_on"] = 0
        self.networks[i] = mine

    def step(self) -> None:
        """Advance as the batch just did, timed; networks that were begun anew are taken over."""
        batch, n = self.batch, self.batch.num_envs
        for i in np.flatnonzero(batch.started):
            self.follow(int(i))
        for mine, theirs in zip(self.networks, batch.networks, strict=True):
            for name, fields in CONTROLS.items():
                for field in fields:
                    getattr(mine.state, name)[field] = getattr(theirs.state, name)[field]
        until = batch.intervals * batch.interval_us * 1000 - 1
        addresses, needs = np.array([m.address for m in self.networks]), np.zeros(n, np.int64)
        while True:
            begin = time.process_time()
            waiting = advance_all(batch._event_loop, addresses, until, needs)
            self.cpu_s += time.process_time() - begin
            if not waiting:
                return
            for i in np.flatnonzero(needs):
                self.networks[i].make_room(int(needs[i]))
                addresses[i] = self.networks[i].address


def packet_events(batch: Batching) -> int:
    return sum(int(network.state.g["packet_events"]) for network in batch.networks)


def row(make: Maker, num_envs: int, steps: int) -> dict[str, Any]:
    """One environment's figures."""
    batch, act = make(num_envs, 1), at_random(0)
    batch.reset(0)
    bare = Bare(batch)
    for _ in range(3):  # to the end of what is made on the first call
        batch.step(act(batch))
        bare.step()
    bare.cpu_s = cpu_s = every_cpu_s = 0.0
    events = acted = every = 0
    while acted < steps:
        chosen, before = act(batch), packet_events(batch)
        begun = batch.terminated | batch.truncated
        begin = time.process_time()
        batch.step(chosen)
        taken = time.process_time() - begin
        kept = bare.cpu_s
        bare.step()
        every_cpu_s += taken
        every += num_envs - int(begun.sum())
        if begun.any():
            # A reset simulates slow start, which the bare simulator here doesn't: leave it out.
            bare.cpu_s = kept
            continue
        cpu_s += taken
        acted += num_envs
        events += packet_events(batch) - before
    return {
        "steps_per_cpu_s": acted / cpu_s,
        "steps_per_cpu_s_with_resets": every / every_cpu_s,
        "share_of_simulator": bare.cpu_s / cpu_s,
        "environments": num_envs,
        "over_pcc_rl": [acted / cpu_s / x for x in PCC_RL_STEPS_PER_S],
        "packet_events_per_step": events / acted,
    }


def threads(make: Maker, num_envs: int, steps: int) -> dict[str, float]:
    """How many times as fast two threads are as one, and what the machine has to give.

    The first in turns, step by step, the second every few steps: two batches of half the
    environments that share nothing, both at once and one after the other. Medians.
    """
    act = at_random(0)
    batches = [make(num_envs, count) for count in (1, 2)]
    halves = [make(num_envs // 2, 1) for _ in range(2)]
    for batch in (*batches, *halves):
        batch.reset(0)
    gains, apart = [], []
    with ThreadPoolExecutor(2) as pool:
        for k in range(steps):
            chosen = act(batches[0])
            taken = [_timed(batch.step, chosen) for batch in _turned(batches, k)]
            one, two = _turned(taken, k)
            gains.append(one / two)
            if k % _APART == 0:
                ways: list[Callable[..., Any]] = [map, pool.map]
                turn = k // _APART
                taken = [_timed(_all, way, halves, act) for way in _turned(ways, turn)]
                one, two = _turned(taken, turn)
                apart.append(one / two)
    for batch in (*batches, *halves):
        batch.close()
    return {"threads2": float(np.median(gains)), "machine2": float(np.median(apart))}


def _turned(pair: list[Any], turn: int) -> list[Any]:
    """The other one goes first every second time."""
    return pair[::-1] if turn % 2 else pair


def _all(way: Callable[..., Any], halves: list[Batching], act: Policy) -> None:
    list(way(_several, halves, [act(half) for half in halves]))


def _several(batch: Batching, chosen: Any) -> None:
    for _ in range(_APART):
        batch.step(chosen)


def _timed(run: Callable[..., object], *arguments: Any) -> float:
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="JSON, which is printed in any case")
    parser.add_argument("--steps", type=int, default=20_000, help="agent steps per environment")
    parser.add_argument("--environments", type=int, default=64, help="environments of a batch")
    parser.add_argument(
        "--pairs", type=int, default=150, help="steps in which threads are compared"
    )
    parser.add_argument("--share", type=float, default=0.8, help="share that is aimed at")
    parser.add_argument("--threads2", type=float, default=1.8, help="gain of two threads aimed at")
    args = parser.parse_args()
    result: dict[str, Any] = {"pcc_rl_steps_per_s": PCC_RL_STEPS_PER_S}
    for name, make in MAKERS.items():
        result[name] = row(make, args.environments, args.steps)
        result[name] |= threads(make, args.environments, args.pairs)
        result[name]["alone"] = row(make, 1, args.steps // 20)["steps_per_cpu_s"]
    print(json.dumps(result, indent=1))
    rows = [result[name] for name in MAKERS]
    met = all(
        r["share_of_simulator"] >= args.share
        and r["threads2"] >= min(args.threads2, _OF_MACHINE * r["machine2"])
        for r in rows
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
