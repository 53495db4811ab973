"""What the trainer on RLlib costs beside a plain torch loop that learns the same per step.

Both step the same tiny problem of a known optimum with the paper's network, in turns and in one
process, so that a busy machine slows both: CPU time of the one over that of the other. Then the
runner's cost beside the network and the environments alone, and a sample from the ring. Ends with
1 where an aim isn't met.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import plain_rl
import torch

from models.rl import agents, training
from models.rl.fragment import Fragment
from models.rl.ring import Ring
from models.rl.runner import BatchRunner, make

AIMS = {"overhead": 1.3, "runner_us": 5.0, "sample_us": 50.0}
AGENTS: dict[str, tuple[str, type]] = {
    "tcco": ("recall-transformer", plain_rl.Sequences),
    "nuwa": ("recall", plain_rl.Policy),
    "macc": ("matrix", plain_rl.Team),
}
"""Agent -> its stand-in with a known optimum, the plain loop."""
STEPS = {"tcco": 1_000, "nuwa": 2_560, "macc": 4_000}
"""Steps of one turn."""


def spent(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def turns(agent: str, repeats: int, own: bool) -> dict[str, Any]:
    """CPU time of both, in turns."""
    name, plain = AGENTS[agent]
    name = agent if own else name
    steps = STEPS[agent]
    params = agents.settings(name, {"learning_starts": 1_000} if agent != "nuwa" else {})
    algorithm = training.start(name, params)
    rows = (repeats + 4) * steps // params.num_envs + 100
    maker = agents.agent(name).maker
    loop = plain(make(maker, params.num_envs, params.threads, params.env), params, rows)

    def ours() -> None:
        until = algorithm.steps + steps
        while algorithm.steps < until:
            algorithm.train()

    seconds: dict[str, list[float]] = {"trainer": [], "plain": []}
    # The first turns fill the memories.
    for _ in range(2):
        ours(), loop.run(steps)
    for _ in range(repeats):
        for label, work, counted in (
            ("trainer", ours, algorithm),
            ("plain", lambda: loop.run(steps), loop),
        ):
            before = counted.steps
            seconds[label].append(spent(work) / (counted.steps - before))
    ratios = [a / b for a, b in zip(*seconds.values(), strict=True)]
    found = {
        "overhead": statistics.median(ratios),
        "overhead_range": [min(ratios), max(ratios)],
        "trainer_us_per_step": 1e6 * statistics.median(seconds["trainer"]),
        "plain_us_per_step": 1e6 * statistics.median(seconds["plain"]),
        "num_envs": params.num_envs,
        "runner": runner(algorithm, repeats),
    }
    algorithm.stop()
    return found


def runner(algorithm: Any, repeats: int, rows: int = 40) -> dict[str, float]:
    """What a runner of 64 environments adds to its network and its environments."""
    config = algorithm.config.copy(copy_frozen=False)
    config.env_config = config.env_config | {"num_envs": 64}
    one = BatchRunner(config=config, worker_index=0, num_workers=0)
    one.module = algorithm.learner.agent
    how: dict[str, Any] = {"rows": rows}
    how |= {"chunk": 20} if "window" in algorithm.settings else {"epsilon": 0.1}
    one.sample(**how)
    inside = {"network": 0.0, "environment": 0.0}

    def timed(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            begun = time.process_time()
            result = work(*given)
            inside[what] += time.process_time() - begun
            return result

        return call

    # Within the very steps: alone, both would find all they need in the caches.
    module, env = one.module, one.env
    one.module = SimpleNamespace(
        forward_exploration=timed("network", module.forward_exploration),
        get_initial_state=module.get_initial_state,
    )
    env.step = timed("environment", env.step)
    rounds = []
    for _ in range(3 * repeats):
        inside.update(network=0.0, environment=0.0)
        whole = spent(lambda: one.sample(**how))
        rounds.append((whole - sum(inside.values()), whole, *inside.values()))
    # The least: what others do on the machine only ever adds.
    names = ("added", "whole", "network", "environment")
    least = min(rounds)
    return {
        f"{name}_us_per_step": 1e6 * value / (rows * 64)
        for name, value in zip(names, least, strict=True)
    }


def sample_us(length: int, parts: int, features: int, alpha: float) -> float:
    """A sample of 32 from a ring of 100,000 rows."""
    ring = Ring(100_000, 64, parts, features, length=length, alpha=alpha)
    for _ in range(5):
        piece = Fragment.empty(0, False, 256, (64, parts, features))
        for name in ring.arrays:
            getattr(piece, name)[...] = 0
        ring.add([piece])
    ring.sample(32)
    return 1e6 * min(spent(lambda: [ring.sample(32) for _ in range(500)]) / 500 for _ in range(5))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="JSON, which is printed in any case")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each")
    parser.add_argument(
        "--own", action="store_true", help="step the agents' own environments, whose cost both bear"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {"aims": AIMS}
    result |= {agent: turns(agent, args.repeats, args.own) for agent in AGENTS}
    result["ring_sample_of_32_us"] = {
        "TCCO, windows of 20, even": sample_us(20, 2, 6, 0.0),
        "TCCO, windows of 20, by priority": sample_us(20, 2, 6, 0.6),
        "MA-CC, single steps, even": sample_us(1, 5, 10, 0.0),
        "MA-CC, single steps, by priority": sample_us(1, 5, 10, 0.6),
    }
    print(json.dumps(result, indent=1))
    met = all(result[agent]["overhead"] <= AIMS["overhead"] for agent in AGENTS)
    added = (result[agent]["runner"]["added_us_per_step"] for agent in AGENTS)
    met = met and all(one <= AIMS["runner_us"] for one in added)
    met = met and all(v <= AIMS["sample_us"] for v in result["ring_sample_of_32_us"].values())
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
