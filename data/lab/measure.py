"""Carry one connection over emulated links, with the probe beside it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.lab import probes, topology
from data.lab.host import cpu_times, steal_share
from data.lab.process import LabError, running, spawn
from data.lab.scenario import Scenario
from data.lab.topology import Lab

TRAFFIC = Path(__file__).with_name("traffic.py")
WARMUP_S = 0.5
# Sockets that still wait for their last ACKs would be cut off with the links (and pin the
# struct_ops), so the emulator outlives them.
LINGER_S = 1.0
FIFO_PRIORITY = 10
PROBED = {"bpf": "probe.csv", "ftrace": "ftrace.txt"}


@dataclass(frozen=True)
class Live:
    """What a run of somebody else's congestion control needs beyond a collected one.

    Attributes
    ----------
    control : str
        Congestion control of the upload, in place of the scenario's: a name of the scenario's
        list, or any that the kernel has.
    agent : callable, optional
        From the lab to the command line of a process that runs beside the traffic: it prints
        ``ready``, and is told to end by SIGTERM.
    beside : callable, optional
        From the lab to a context in which the traffic runs, entered when the devices are there.
    nap_s : float, optional
        How long the traffic process rests between looks at its sockets; by default as long as
        where many labs run at once. At 0 it reads at once, and no rate but the links' limits it.
    queues : mapping
        Stage to the shared object with its queue's policy, see `data.lab.queues`.
    """

    control: str
    agent: Callable[[Lab], list[str]] | None = None
    nap_s: float | None = None
    beside: Callable[[Lab], contextlib.AbstractContextManager[Any]] | None = None
    queues: Mapping[str, Path] = field(default_factory=dict)


def _plan(scenario: Scenario, lab: Lab, seed: int, port: int, live: Live | None) -> str:
    control = live.control if live else scenario.cc
    background = [
        {
            **flow.model_dump(),
            **topology.background_ends(flow.over),
            "cc": control if flow.cc == "same" else flow.cc,
            "seed": seed * 31 + number,
        }
        for number, flow in enumerate(scenario.background)
    ]
    return json.dumps(
        {
            "client": lab.namespace("c"),
            "server": lab.namespace("s"),
            "bg": lab.namespace("b"),
            "addresses": topology.ADDRESS,
            "server_address": topology.ADDRESS["srv"],
            "port": port,
            "sysctls": topology.SYSCTLS,
            "warmup_s": WARMUP_S if background else 0.0,
            "mptcp": {
                "transport": scenario.transport,
                "first": scenario.first,
                "subflows": len(scenario.data_paths),
                "cc": control,
                "duration_s": scenario.duration_s,
                "size_bytes": scenario.size_bytes,
            },
            "background": background,
            "per_second": live is not None,
            "nap_s": live.nap_s if live else None,
        }
    )


def _carry(scenario: Scenario, lab: Lab, seed: int, port: int, live: Live | None) -> dict[str, Any]:
    """Run the traffic to its end; its last message."""
    process = spawn([sys.executable, "-I", "-S", str(TRAFFIC)], stdin=subprocess.PIPE)
    try:
        plan = _plan(scenario, lab, seed, port, live)
        out, err = process.communicate(plan, scenario.duration_s + 60)
    except subprocess.TimeoutExpired:
        raise LabError("traffic did not end") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    messages = [json.loads(line) for line in out.splitlines()]
    last: dict[str, Any] = messages[-1] if messages else {}
    if last.get("event") != "done":
        raise LabError(f"traffic: {last.get('reason') or ' '.join(err.split())[-300:]}")
    last["joined_after_s"] = messages[0].get("after_s")
    last["sports"] = messages[0].get("sports")
    return last


def measure(
    scenario: Scenario,
    lab: Lab,
    seed: int,
    work: Path,
    tools: dict[str, Path],
    probe: str,
    live: Live | None,
) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Emulate, probe and carry one connection.

    Returns
    -------
    traffic, stats : dict
        The traffic's last message and the emulator's statistics.
    steal : float
        Share of CPU time stolen meanwhile.

    Raises
    ------
    LabError
        When a part of the lab fails.
    """
    config = work / "klink.conf"
    queues = live.queues if live else {}
    text = topology.emulator_config(scenario, lab, work, seed, queues)
    config.write_text(text, encoding="ascii")
    stats = work / "klink.json"
    link = [str(tools["klink"]), str(config), "--log", str(work / "klink.log")]
    link += ["--stats", str(stats), "--fifo", str(FIFO_PRIORITY)]
    with running(link, "link emulator"):
        topology.address(lab, scenario)
        recorder = probes.command(probe, tools, lab, work / PROBED[probe])
        # Told to end, ftrace's recorder removes its instance.
        with contextlib.ExitStack() as beside:
            signal = "TERM" if probe == "ftrace" else "KILL"
            beside.enter_context(running(recorder, "probe", signal))
            if live and live.beside:
                beside.enter_context(live.beside(lab))
            if live and live.agent:
                beside.enter_context(running(live.agent(lab), "agent"))
            before = cpu_times()
            traffic = _carry(scenario, lab, seed, probes.port(probe, lab.slot), live)
            steal = steal_share(before, cpu_times())
        time.sleep(LINGER_S)
    return traffic, json.loads(stats.read_text(encoding="utf-8")), steal


def emulator_t0_s(log: Path) -> float:
    """When the emulator began (CLOCK_MONOTONIC, seconds), of its log."""
    with log.open(encoding="ascii") as file:
        return int(file.readline().removeprefix("#t0_mono_ns=")) / 1e9
