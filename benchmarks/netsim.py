"""Speed of the simulator: per event, per flow count, in real time, per agent step, at start.

Beside it, ns-3 on the same dumbbell: measured in this run when ``benchmarks/ns3/build/dumbbell``
exists, else the CPU time noted for Debian's ns-3.37 on a quiet core of this kind (27 s for 60
simulated seconds of CUBIC). PCC-RL's own simulator made 315 to 547 agent steps a second; it
works on monitor intervals of one flow through one fluid queue, not on packets.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from data.netsim import scenario
from data.netsim.network import Network
from data.netsim.scenario import Scenario

NS3_CUBIC_CPU_S = 27.0
PCC_RL_STEPS = (315, 547)
NS3 = Path(__file__).parent / "ns3" / "build" / "dumbbell"


def timed(network: Network, until_s: float, step_s: float | None = None) -> float:
    """CPU seconds to reach a time, in one go or in steps."""
    begin = time.process_time()
    if step_s is None:
        network.advance(until_s)
    else:
        for i in range(1, round(until_s / step_s) + 1):
            network.advance(i * step_s)
    return time.process_time() - begin


def flows(count: int) -> Scenario:
    """A dumbbell of 1 Mbps per flow and an access link each."""
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
                    "paths": [{"forward": ["access{i}", "core"], "back": ["back"]}],
                }
            ],
        }
    )
    return Scenario.parse(tree, "benchmark")


def main() -> None:
    """Measure and print."""
    result: dict[str, Any] = {}
    begin = time.perf_counter(), time.process_time()
    Network(flows(2)).advance(0.001)
    result["first_call_s"] = {
        "wall": time.perf_counter() - begin[0], "cpu": time.process_time() - begin[1]
    }  # fmt: skip
    code = "import benchmarks.netsim as b; b.Network(b.flows(2)).advance(0.001)"
    begin_wall = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
    result["second_start_wall_s"] = time.perf_counter() - begin_wall

    spec = scenario.load("macc-fig4")["droptail"]
    result["dumbbell"] = {}
    for name in ("reno", "cubic", "bbr"):
        network = Network(spec, name, seed=1)
        cpu = timed(network, 60.0)
        result["dumbbell"][name] = {
            "cpu_s": cpu,
            "packet_events_per_s": int(network.state.g["packet_events"]) / cpu,
            "goodput_mbps": float(network.state.conn["data_rcv"].sum() * 1448 * 8 / 60e6),
        }
    ns3 = _ns3_cpu_s()
    cubic = result["dumbbell"]["cubic"]["cpu_s"]
    result["ns3_cubic_cpu_s"] = {"here": ns3, "noted": NS3_CUBIC_CPU_S}
    result["times_ns3"] = (ns3 if ns3 is not None else NS3_CUBIC_CPU_S) / cubic

    result["ns_per_packet_event_by_flows"] = {}
    for count in (2, 20, 200):
        network = Network(flows(count), "cubic", seed=1)
        cpu = timed(network, max(4.0, 2000.0 / count))
        events = int(network.state.g["packet_events"])
        result["ns_per_packet_event_by_flows"][count] = cpu / events * 1e9

    tcco = scenario.load("tcco-fig9a")[""]
    result["tcco_times_real_time"] = 10.0 / timed(Network(tcco, "cubic", seed=1), 10.0, 0.02)

    network = Network(flows(2), "agent", seed=1)
    network.advance(2.0)
    begin_cpu, steps = time.process_time(), 5000
    for i in range(steps):
        network.state.sub["agent_cwnd"] = 5 + i % 3
        network.advance(2.0 + (i + 1) * 0.02)
    result["agent_steps_per_s"] = steps / (time.process_time() - begin_cpu)
    result["pcc_rl_steps_per_s"] = PCC_RL_STEPS
    print(json.dumps(result, indent=2))


def _ns3_cpu_s() -> float | None:
    """CPU seconds of the same CUBIC dumbbell in ns-3, if its program has been built."""
    if not NS3.exists():
        return None
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(NS3), "--cc=TcpCubic", "--seed=1"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


if __name__ == "__main__":
    main()
