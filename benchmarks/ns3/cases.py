"""What is compared: the same dumbbell, control and queue in ns-3 and in the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from data.netsim import scenario
from data.netsim.scenario import Scenario


@dataclass(frozen=True)
class Dumbbell:
    """Three senders behind links of 100 Mbps, a core; times in ms, as ns-3's program takes them."""

    delay: float = 100.0
    access: float = 20.0
    loss: float = 0.0003
    rate: float = 30.0
    queue: int = 385
    flows: int = 3
    duration: float = 100.0
    warmup: float = 20.0

    def arguments(self) -> list[str]:
        """For ns-3's program."""
        return [f"--{name}={value:g}" for name, value in vars(self).items()]


MACC = Dumbbell()
"""ma-cc.txt, Fig. 2 and Table 1: 280 ms, 0.03 % loss."""
LOSSY = Dumbbell(loss=0.001, duration=140.0, warmup=40.0)
"""The same path with 0.1 %: windows small enough to settle within the run."""
SHORT = Dumbbell(delay=20.0, access=5.0, loss=0.0, queue=150, duration=50.0, warmup=10.0)
"""60 ms and no loss but the queue's, which holds as much as the path."""
LARGE = Dumbbell(delay=20.0, access=5.0, loss=0.0, queue=385, duration=50.0, warmup=10.0)
"""The same with room for queue disciplines to do better."""
NEAR = Dumbbell(delay=5.0, access=2.0, loss=0.0, queue=385, duration=30.0, warmup=5.0)
"""18 ms, for DCTCP."""


@dataclass(frozen=True)
class Case:
    """One row: ns-3's class, the simulator's control, where, and what makes them alike."""

    name: str
    ns3: str
    ours: str
    where: Dumbbell
    queue: str = "droptail"
    flow: dict[str, Any] = field(default_factory=dict)


# ns-3 grows by ACKs where it has NewReno's growth.
_BY_ACKS = {"byte_counting": False}
CASES = [
    Case("NewReno", "TcpNewReno", "reno", MACC, flow=_BY_ACKS),
    Case("Reno of Linux", "TcpLinuxReno", "reno", MACC),
    Case("CUBIC", "TcpCubic", "cubic", MACC),
    Case("BBR, one flow", "TcpBbr", "bbr", replace(MACC, flows=1)),
    Case("Vegas", "TcpVegas", "vegas", MACC, flow=_BY_ACKS),
    Case("Westwood+", "TcpWestwoodPlus", "westwood", MACC, flow=_BY_ACKS),
    Case("NewReno", "TcpNewReno", "reno", LOSSY, flow=_BY_ACKS),
    Case("Reno of Linux", "TcpLinuxReno", "reno", LOSSY),
    Case("CUBIC", "TcpCubic", "cubic", LOSSY),
    Case("Westwood+", "TcpWestwoodPlus", "westwood", LOSSY, flow=_BY_ACKS),
    Case("NewReno", "TcpNewReno", "reno", SHORT, flow=_BY_ACKS),
    Case("Reno of Linux", "TcpLinuxReno", "reno", SHORT),
    Case("CUBIC", "TcpCubic", "cubic", SHORT),
    Case("BBR, one flow", "TcpBbr", "bbr", replace(SHORT, flows=1)),
    Case("BBR", "TcpBbr", "bbr", SHORT),
    Case("Vegas", "TcpVegas", "vegas", SHORT, flow=_BY_ACKS),
    Case("Westwood+", "TcpWestwoodPlus", "westwood", SHORT, flow=_BY_ACKS),
    Case("Reno of Linux, RED", "TcpLinuxReno", "reno", LARGE, "red"),
    Case("Reno of Linux, CoDel", "TcpLinuxReno", "reno", LARGE, "codel"),
    Case("Reno of Linux, PIE", "TcpLinuxReno", "reno", LARGE, "pie"),
    Case("CUBIC, CoDel", "TcpCubic", "cubic", LARGE, "codel"),
    Case("DCTCP, marks from 65 packets", "TcpDctcp", "dctcp", NEAR, "mark"),
]


def arguments(case: Case, seed: int) -> list[str]:
    """Command line of ns-3's program for a case, without the program."""
    chosen = [f"--cc={case.ns3}", f"--queue-disc={case.queue}", f"--seed={seed}"]
    return [*chosen, *case.where.arguments()]


def spec(case: Case) -> Scenario:
    """The case in the simulator: links as in `data/scenarios/netsim/macc-fig4.yaml`."""
    where = case.where
    core: dict[str, Any] = {
        "rate_mbps": where.rate, "delay_ms": where.delay, "queue_packets": where.queue,
        "loss": where.loss, "loss_at": "exit",
    }  # fmt: skip
    if case.queue == "mark":
        core["mark_packets"] = 65
    else:
        core["queue"] = case.queue
    if case.queue == "red":
        core["red"] = {"min_packets": 96, "max_packets": 288, "max_p": 0.1}
    line = {"rate_mbps": 100, "delay_ms": where.access, "queue_packets": 1000}
    copies = f"{{0..{where.flows - 1}}}"
    tree = {
        "duration_s": where.duration,
        "warmup_s": where.warmup,
        "links": {
            f"access{copies}": line,
            "core": core,
            f"egress{copies}": line,
            f"return{copies}": line,
            "core_back": {"rate_mbps": where.rate, "delay_ms": where.delay, "queue_packets": 1000},
            f"ingress{copies}": line,
        },
        "flows": [
            {
                "name": "f",
                "count": where.flows,
                "start_spread_s": 0.5,
                "window_bytes": 8_388_608,
                "quick_acks": 0,
                "paths": [
                    {
                        "forward": ["access{i}", "core", "egress{i}"],
                        "back": ["return{i}", "core_back", "ingress{i}"],
                    }
                ],
                **case.flow,
            }
        ],
    }
    return Scenario.parse(scenario.expand(tree, case.name), case.name)
