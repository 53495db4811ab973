"""Agent steps per second of the environments: alone, and many in threads.

PCC-RL's own simulator made 315 to 547 steps a second on one core. It moves a fluid through one
queue per monitor interval; here every packet and every ACK of a step is simulated, with recovery
from loss, the scheduler and the receiver. So each row also has what a step is: simulated time,
packet events and how much faster than real time it went.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from data.netsim.network import Network
from models.envs.macc import parallel_env
from models.envs.nuwa import NuwaEnv
from models.envs.samplers import alternating, two_paths
from models.envs.tcco import TccoEnv
from models.envs.vector import nuwa, tcco

PCC_RL_STEPS_PER_S = (315, 547)


def row(steps: int, cpu_s: float, wall_s: float, simulated_s: float, events: int) -> dict[str, Any]:
    return {
        "steps_per_cpu_s": steps / cpu_s,
        "steps_per_wall_s": steps / wall_s,
        "over_pcc_rl": [steps / cpu_s / x for x in PCC_RL_STEPS_PER_S],
        "packet_events_per_step": events / steps,
        "simulated_s_per_cpu_s": simulated_s / cpu_s,
    }


def packet_events(network: Network) -> int:
    return int(network.state.g["packet_events"])


def single(env: Any, steps: int, act: Callable[[Any], Any]) -> dict[str, Any]:
    """Random actions in one environment; resets, which simulate slow start, aren't timed."""
    cpu = wall = simulated = 0.0
    events = done = episode = 0
    while done < steps:
        env.reset(seed=episode)
        network = env.session.network
        before, begun = packet_events(network), network.now_s
        over = False
        start = time.process_time(), time.perf_counter()
        while not over and done < steps:
            truncated = env.step(act(env))[3]
            over = all(truncated.values()) if isinstance(truncated, dict) else truncated
            done += 1
        cpu += time.process_time() - start[0]
        wall += time.perf_counter() - start[1]
        events += packet_events(network) - before
        simulated += network.now_s - begun
        episode += 1
    return row(done, cpu, wall, simulated, events)


def threads(envs: Any, steps: int) -> dict[str, Any]:
    """Random actions in many environments; CPU time is that of all threads."""
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(steps)]
    networks = [env.session.network for env in envs.envs]
    before = sum(packet_events(n) for n in networks), sum(n.now_s for n in networks)
    start = time.process_time(), time.perf_counter()
    for action in actions:
        envs.step(action)
    cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    events = sum(packet_events(n) for n in networks) - before[0]
    simulated = sum(n.now_s for n in networks) - before[1]
    envs.close()
    result = row(steps * envs.num_envs, cpu, wall, simulated, events)
    return result | {"environments": envs.num_envs, "threads": envs.threads}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="JSON, which is printed in any case")
    parser.add_argument("--steps", type=int, default=2000, help="steps per row")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    steps = args.steps

    def two(env: Any) -> Any:
        return rng.integers(0, 5, 2)

    def one(env: Any) -> Any:
        return np.int64(rng.integers(5))

    def team(env: Any) -> Any:
        # Routers mostly keep their packets: one that drops leaves nothing to simulate.
        return {
            agent: np.int64(rng.integers(3) if agent.startswith("sender") else rng.random() < 0.02)
            for agent in env.agents
        }

    # The first call reads or makes the machine code.
    single(NuwaEnv(), 2, one)
    result = {
        "pcc_rl_steps_per_s": PCC_RL_STEPS_PER_S,
        "TCCO, 2 x 400-500 Mbps": single(TccoEnv(alternating), steps, two),
        "TCCO, 20-500 Mbps": single(TccoEnv(two_paths), steps, two),
        "Nuwa, 5-100 Mbps": single(NuwaEnv(), steps, one),
        "MACC": single(parallel_env(), steps, team),
        "TCCO, 2 x 400-500 Mbps, 8 in one thread": threads(tcco(8, threads=1), steps // 8),
        "TCCO, 2 x 400-500 Mbps, 8 in threads": threads(tcco(8), steps // 8),
        "Nuwa, 5-100 Mbps, 8 in threads": threads(nuwa(8), steps // 8),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
