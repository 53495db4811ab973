"""Speed of the simulator: per event, per flow count, in real time, per agent step, at start.

Beside it, ns-3 on the same dumbbell where libns3-dev is there; elsewhere the ratio to it is "not
measured": seconds of another machine say nothing of this one. PCC-RL's own simulator made 315 to
547 agent steps a second; it works on monitor intervals of one flow through one fluid queue, not on
packets.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ns3.program import PROGRAM, built
from data.netsim import scenario
from data.netsim.network import Network
from data.netsim.scenario import Scenario
from data.netsim.state import EV_REO, FAR

NOT_MEASURED = "not measured"
LEFT_OUT = "ns-3: no libns3-dev here (Debian's package; benchmarks/ns3/build.sh builds with it)"
PCC_RL_STEPS = (315, 547)
CHUNKS = 40
PIECE_FLOW_S = 400.0
"""Seconds of a piece times flows: 100 000 events, so that refilling the caches hardly counts."""
SMALL_WINDOW = 12
"""Segments: what the path of `flows` holds with its queue full."""


def timed(network: Network, until_s: float, step_s: float | None = None) -> float:
    """CPU seconds to reach a time, in one go or in steps."""
    begin = time.process_time()
    if step_s is None:
        network.advance(until_s)
    else:
        for i in range(1, round(until_s / step_s) + 1):
            network.advance(i * step_s)
    return time.process_time() - begin


def flows(count: int, window: int | None = None) -> Scenario:
    """A dumbbell of 1 Mbps per flow and an access link each; windows of at most so many segments.

    With ``SMALL_WINDOW`` segments nothing is lost and the rings of segments stay small.
    """
    limit = {} if window is None else {"window_bytes": window * 1448}
    tree: dict[str, Any] = scenario.expand(
        {
            "links": {
                f"access{{0..{count - 1}}}": {"rate_mbps": 100, "delay_ms": 5},
                "core": {"rate_mbps": count, "delay_ms": 20, "queue_packets": 8 * count},
                "back": {"delay_ms": 25},
            },
            "flows": [
                {
                    "name": "f",
                    "count": count,
                    "start_spread_s": 2.0,
                    **limit,
                    "paths": [{"forward": ["access{i}", "core"], "back": ["back"]}],
                }
            ],
        },
        "benchmark",
    )
    return Scenario.parse(tree, "benchmark")


def start_s() -> dict[str, float]:
    """Seconds to a first simulated event: here (compiling if need be), then in a new process."""
    begin, cpu = time.perf_counter(), time.process_time()
    Network(flows(2)).advance(0.001)
    here = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
    code = "import benchmarks.netsim as b; b.Network(b.flows(2)).advance(0.001)"
    begin, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - cpu
    return {"first_wall": here["wall"], "first_cpu": here["cpu"],
            "second_wall": time.perf_counter() - begin, "second_cpu": cpu}  # fmt: skip


def dumbbell() -> dict[str, dict[str, float]]:
    """MA-CC's dumbbell for 60 s under three controls; medians over seeds."""
    spec = scenario.load("macc-fig4")["droptail"]
    result = {}
    for name in ("reno", "cubic", "bbr"):
        runs = []
        for seed in range(5):
            network = Network(spec, name, seed=seed)
            cpu = timed(network, 60.0)
            data = int(network.state.conn["data_rcv"].sum())
            events = int(network.state.g["packet_events"])
            runs.append((cpu, events / cpu, data * 1448 * 8 / 60e6))
        cpu, rate, goodput = (float(x) for x in np.median(runs, axis=0))
        result[name] = {"cpu_s": cpu, "packet_events_per_s": rate, "goodput_mbps": goodput}
    return result


def ns3_cubic(*options: str) -> dict[str, float] | None:
    """CPU seconds and goodput of the same CUBIC dumbbell in ns-3, if its program can be had."""
    if not built():
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [str(PROGRAM), "--cc=TcpCubic", "--seed=2", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    words = dict(word.split("=") for word in done.stdout.split())
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return {"cpu_s": cpu, "goodput_mbps": float(words["goodput_mbps"])}


def times_ns3(ns3: dict[str, float] | None, ours_cpu_s: float) -> float | str:
    """ns-3's CPU time over ours, where both were measured in this run."""
    return ns3["cpu_s"] / ours_cpu_s if ns3 else NOT_MEASURED


def cost_of_a_megabit() -> dict[str, dict[str, float]]:
    """CPU milliseconds per megabit delivered over the dumbbell of `flows`, here and in ns-3."""
    result: dict[str, dict[str, float]] = {"netsim": {}}
    for count, seconds in ((2, 200), (200, 10)):
        network = Network(flows(count), "cubic", seed=1)
        cpu = timed(network, seconds)
        megabits = int(network.state.conn["data_rcv"].sum()) * 1448 * 8 / 1e6
        result["netsim"][str(count)] = 1e3 * cpu / megabits
        theirs = ns3_cubic(
            f"--flows={count}", f"--rate={count}", "--access=5", "--delay=20",
            f"--queue={8 * count}", f"--duration={seconds}", "--warmup=1",
        )  # fmt: skip
        if theirs is not None:
            megabits = theirs["goodput_mbps"] * (seconds - 1)
            result.setdefault("ns3", {})[str(count)] = 1e3 * theirs["cpu_s"] / megabits
    return result


def with_flows(count: int, idle_events: int = 0, window: int | None = None) -> Network:
    """After ten seconds of start, optionally with events in the heap that never come."""
    network = Network(flows(count, window), "cubic", seed=1)
    network.advance(10.0)
    g, heap = network.state.g, network.state.heap
    for k in range(idle_events):
        heap[int(g["heap_n"])] = (FAR // 2 + k, FAR // 2 + k, EV_REO, 0)
        g["heap_n"] += 1
    return network


def cost_by_flows() -> dict[str, float]:
    """Nanoseconds per packet event by number of flows, and what of it is the heap's depth.

    "2, deep heap" has as many events in the heap as 200 flows have. "small windows" are those
    with which nothing is lost and rings have 16 segments instead of 32 or 64. Each figure is the
    first decile over pieces of time measured in turns, so that what else the machine does falls on
    all.
    """
    events = int(with_flows(200).state.g["heap_n"])
    networks = {
        "2": with_flows(2),
        "2, deep heap": with_flows(2, events),
        "20": with_flows(20),
        "200": with_flows(200),
        "2, small windows": with_flows(2, window=SMALL_WINDOW),
        "200, small windows": with_flows(200, window=SMALL_WINDOW),
    }
    costs: dict[str, list[float]] = {name: [] for name in networks}
    for _ in range(CHUNKS):
        for name, network in networks.items():
            before = int(network.state.g["packet_events"])
            cpu = timed(network, network.now_s + PIECE_FLOW_S / len(network.flow_names))
            costs[name].append(cpu / (int(network.state.g["packet_events"]) - before) * 1e9)
    return {name: float(np.percentile(pieces, 10)) for name, pieces in costs.items()}


def speed_up_of_two_threads() -> float:
    """Wall time of eight networks one after the other over that in two threads; median of five."""
    ratios = []
    for seed in range(5):
        walls = []
        for workers in (1, 2):
            networks = [Network(flows(8), "cubic", seed=8 * seed + i) for i in range(8)]
            begin = time.perf_counter()
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda network: network.advance(60.0), networks))
            walls.append(time.perf_counter() - begin)
        ratios.append(walls[0] / walls[1])
    return float(np.median(ratios))


def agent_steps_per_s() -> float:
    """Steps of an agent that sets two flows' windows every 20 ms, Python's part included."""
    network = Network(flows(2), "agent", seed=1)
    network.advance(2.0)
    begin, steps = time.process_time(), 5000
    for i in range(steps):
        network.state.sub["agent_cwnd"] = 5 + i % 3
        network.advance(2.0 + (i + 1) * 0.02)
    return steps / (time.process_time() - begin)


def stolen() -> int:
    """Ticks of CPU that other guests of the host took from this machine so far."""
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return int(words[8])


def main() -> None:
    """Measure and print: figures, then each aim with what was reached."""
    begin, steal = time.perf_counter(), stolen()
    start, bell, ns3, cost = start_s(), dumbbell(), ns3_cubic(), cost_by_flows()
    megabit = cost_of_a_megabit()
    threads = speed_up_of_two_threads()
    tcco = scenario.load("tcco-fig9a")[""]
    real_time = 10.0 / timed(Network(tcco, "cubic", seed=1), 10.0, 0.02)
    steps = agent_steps_per_s()
    slowest = min(row["packet_events_per_s"] for row in bell.values())
    result: dict[str, Any] = {
        "start_s": start,
        "dumbbell": bell,
        "ns3_cubic": ns3 or NOT_MEASURED,
        "left_out": [] if ns3 else [LEFT_OUT],
        "ns_per_packet_event_by_flows": cost,
        "ms_per_megabit_by_flows": megabit,
        "cost of a megabit, 200 flows over 2": {
            name: costs["200"] / costs["2"] for name, costs in megabit.items()
        },
        "agent_steps_per_s": steps,
        "pcc_rl_steps_per_s": PCC_RL_STEPS,
        "aims": {
            "times ns-3 on the CUBIC dumbbell (50)": times_ns3(ns3, bell["cubic"]["cpu_s"]),
            "packet events per s and core (1.5e6)": slowest,
            "cost per event, 200 flows over 2 (1)": cost["200"] / cost["2"],
            "cost per event, 2 flows and a deep heap over 2 (1)": cost["2, deep heap"] / cost["2"],
            "two threads over one (2)": threads,
            "TCCO with 20 ms decisions, times real time (10)": real_time,
            "second start, s (5)": start["second_wall"],
            "agent steps over PCC-RL's best": steps / PCC_RL_STEPS[1],
        },
        "wall_s": time.perf_counter() - begin,
        "stolen_ticks": stolen() - steal,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
