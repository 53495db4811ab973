"""One labelled connection: namespaces, link emulator, probe and traffic, then the compact log."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import clean, compact, figures, probes, topology, validate
from data.lab.scenario import Scenario
from data.lab.topology import Lab

TRAFFIC = Path(__file__).with_name("traffic.py")
WARMUP_S = 0.5
# Sockets that still wait for their last ACKs would be cut off with the links (and pin the
# struct_ops), so the emulator outlives them.
LINGER_S = 1.0
FIFO_PRIORITY = 10
PROBED = {"bpf": "probe.csv", "ftrace": "ftrace.txt"}


class LabError(RuntimeError):
    """A part of the lab failed: the run is worth another try, not the user's mistake."""


@dataclass(frozen=True)
class RunResult:
    """What one run left: the log's path (None if it failed) and the record for campaign.jsonl."""

    path: Path | None
    valid: bool
    reasons: tuple[str, ...]
    record: dict[str, Any] = field(default_factory=dict)


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
    """

    control: str
    agent: Callable[[Lab], list[str]] | None = None


def cpu_times() -> tuple[int, int]:
    """Jiffies stolen by the hypervisor, and all, since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    return fields[7], sum(fields)


def steal_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of CPU time stolen between two `cpu_times`."""
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def _spawn(command: list[str], end_signal: str = "KILL", **options: Any) -> subprocess.Popen[str]:
    # One process group a child, ended by the kernel when this process is gone.
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", end_signal, "--", *command],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        **options,
    )


def _await_line(process: subprocess.Popen[str], what: str, timeout_s: float) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            raise LabError(f"{what}: no answer within {timeout_s:.0f} s")
    line = process.stdout.readline().strip()
    if not line:
        assert process.stderr is not None
        process.wait(timeout=5)
        reason = " ".join(process.stderr.read().split())[-300:]
        raise LabError(f"{what} ended early ({process.returncode}): {reason or 'no message'}")
    return line


def _stop(process: subprocess.Popen[str], timeout_s: float = 5.0) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
        process.communicate(timeout=timeout_s)


@contextlib.contextmanager
def _running(
    command: list[str], what: str, end_signal: str = "KILL"
) -> Iterator[subprocess.Popen[str]]:
    process = _spawn(command, end_signal)
    try:
        if (line := _await_line(process, what, 10)) != "ready":
            raise LabError(f"{what}: expected 'ready', got {line!r}")
        yield process
    finally:
        _stop(process)


@contextlib.contextmanager
def _work_folder(slot: int) -> Iterator[Path]:
    # One fixed folder a slot: what a killed run left there goes with the next run or `clean`.
    work = clean.work_folder(slot)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _plan(scenario: Scenario, lab: Lab, seed: int, port: int, live: Live | None) -> str:
    background = [
        {**flow.model_dump(), **topology.background_ends(flow.over), "seed": seed * 31 + number}
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
                "cc": live.control if live else scenario.cc,
                "duration_s": scenario.duration_s,
            },
            "background": background,
            "per_second": live is not None,
        }
    )


def _carry(scenario: Scenario, lab: Lab, seed: int, port: int, live: Live | None) -> dict[str, Any]:
    """Run the traffic to its end; its last message."""
    process = _spawn([sys.executable, "-I", "-S", str(TRAFFIC)], stdin=subprocess.PIPE)
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


def _measure(
    scenario: Scenario,
    lab: Lab,
    seed: int,
    work: Path,
    tools: dict[str, Path],
    probe: str,
    live: Live | None,
) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Emulate, probe and carry; traffic's message, the emulator's stats, stolen share."""
    config = work / "klink.conf"
    config.write_text(topology.emulator_config(scenario, lab, work, seed), encoding="ascii")
    stats = work / "klink.json"
    link = [str(tools["klink"]), str(config), "--log", str(work / "klink.log")]
    link += ["--stats", str(stats), "--fifo", str(FIFO_PRIORITY)]
    with _running(link, "link emulator"):
        topology.address(lab, scenario)
        recorder = probes.command(probe, tools, lab, work / PROBED[probe])
        # Told to end, ftrace's recorder removes its instance.
        with contextlib.ExitStack() as beside:
            signal = "TERM" if probe == "ftrace" else "KILL"
            beside.enter_context(_running(recorder, "probe", signal))
            if live and live.agent:
                beside.enter_context(_running(live.agent(lab), "agent"))
            before = cpu_times()
            traffic = _carry(scenario, lab, seed, probes.port(probe, lab.slot), live)
            steal = steal_share(before, cpu_times())
        time.sleep(LINGER_S)
    return traffic, json.loads(stats.read_text(encoding="utf-8")), steal


def describe(scenario: Scenario) -> dict[str, Any]:
    """Scenario in the few numbers that stand in labels and records."""
    flows = [flow.over for flow in scenario.background]
    found: dict[str, Any] = {
        "label": scenario.label,
        "dataset": scenario.dataset,
        "family": scenario.family,
        "case": scenario.case,
        "cc": scenario.cc,
        "duration_s": scenario.duration_s,
        "cross_traffic": "+".join(sorted(set(flows))) or "none",
        "first": scenario.first,
    }
    for path in scenario.data_paths:
        queue = scenario.stages[getattr(scenario.bottleneck, path)].limit_bytes
        found |= {
            f"rtt_{path}_ms": round(scenario.base_rtt_ms(path), 3),
            f"rate_{path}_mbps": scenario.rate_mbps(path),
            f"queue_{path}_bytes": queue,
        }
    return found


def run(
    scenario: Scenario,
    out_dir: Path,
    slot: int,
    seed: int,
    name: str | None = None,
    keep_csv: bool = False,
    probe: str | None = None,
    live: Live | None = None,
) -> RunResult:
    """Collect one connection.

    Parameters
    ----------
    scenario : Scenario
        Already varied; see `Scenario.varied`.
    out_dir : Path
        Where ``<name>.klog.zst`` (BPF) or ``<name>.ftrace.zst`` goes.
    slot : int
        Number of the lab on this machine; two runs at once need two slots.
    seed : int
        Of jitter, loss and on-off traffic.
    name : str, optional
        Name of the log; ``<case>-<seed>`` if not given.
    keep_csv : bool
        Keep what the probe wrote, the emulator's log, statistics and configuration beside it.
    probe : str, optional
        ``bpf`` or ``ftrace``; see `probes.choose`.
    live : Live, optional
        Run another congestion control than the scenario's, maybe with an agent beside it. The
        record then also has ``emulator_t0_s`` (CLOCK_MONOTONIC), and its ``traffic`` the
        receivers' bytes of each second and ``begun_s``.

    Returns
    -------
    RunResult
        `valid` says whether the host and the bottleneck were as they should; the log is written
        in either case, unless the lab itself failed (reason ``failed``).

    Raises
    ------
    UserError
        The machine lacks what the lab needs.
    """
    if os.geteuid():
        raise UserError("the lab needs root for network namespaces; run it with sudo")
    probe = probes.choose(probe)
    if probe == "ftrace" and len(scenario.data_paths) > 2:
        raise UserError(
            "three subflows need the BPF probe, ftrace's log doesn't tell them apart; "
            "run: cczoo lab doctor"
        )
    control = live.control if live else scenario.cc
    tools = probes.prepare(probe, control == "lia")
    name = name or f"{scenario.case or (scenario.label or 'tcp').lower()}-{seed}"
    out_dir.mkdir(parents=True, exist_ok=True)
    lab = Lab(slot)
    record: dict[str, Any] = {
        "id": name,
        **describe(scenario),
        "cc": control,
        "seed": seed,
        "slot": slot,
        "probe": probe,
        "kernel": platform.release(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 2),
        "scenario": scenario.model_dump(exclude_defaults=True, mode="json"),
    }
    with _work_folder(slot) as work:
        try:
            topology.create(lab)
            traffic, stats, steal = _measure(scenario, lab, seed, work, tools, probe, live)
            log = probes.read(probe, work / PROBED[probe], slot, scenario)
            if live:
                record["emulator_t0_s"] = _emulator_t0_s(work / "klink.log")
        except (LabError, UserError, subprocess.SubprocessError, OSError) as error:
            record |= {"valid": False, "reasons": ["failed"], "error": str(error)}
            return RunResult(None, False, ("failed",), record)
        finally:
            topology.remove(lab)
        result = _finish(scenario, record, traffic, stats, steal, log, out_dir)
        if keep_csv:
            for file in (PROBED[probe], "klink.log", "klink.json", "klink.conf"):
                shutil.copy(work / file, out_dir / f"{name}.{file}")
    return result


def _finish(
    scenario: Scenario,
    record: dict[str, Any],
    traffic: dict[str, Any],
    stats: dict[str, Any],
    steal: float,
    log: tuple[compact.Events, dict[str, Any], bytes],
    out_dir: Path,
) -> RunResult:
    events, probed, text = log
    count, flows = validate.windows(events, len(scenario.data_paths))
    lateness = float(stats["lateness_us"]["p99"])
    reasons = validate.host_reasons(steal, lateness, int(probed["lost_events"]))
    active_s = float(traffic["duration_s"]) + (WARMUP_S if scenario.background else 0.0)
    where, account = validate.bottleneck(scenario, topology.paths(scenario), stats, active_s)
    if scenario.transport == "mptcp":
        reasons += where
        if count == 0:
            reasons.append("no-window")
    number = _numbers(scenario, probed["subflows"], traffic.pop("sports"))
    sports = {path: probed["subflows"].get(n, {}).get("sport") for path, n in number.items()}
    bottlenecks = _bottlenecks(scenario, number)
    meta = {
        "token": probed["token"],
        "kernel": record["kernel"],
        "cc": record["cc"],
        "scenario": scenario.case or scenario.label or "tcp",
        "command": " ".join(["cczoo", *sys.argv[1:]]) if len(sys.argv) > 1 else "cczoo lab",
        "subflows": {n: {k: v for k, v in s.items() if k != "sfid"}
                     for n, s in probed["subflows"].items()},
        "label": scenario.label,
        "wifi_sport": sports["wifi"],
        **bottlenecks,
    }  # fmt: skip
    path, size = probes.write(record["probe"], out_dir, record["id"], events, text, meta)
    record |= {
        "valid": not reasons,
        "reasons": reasons,
        "bytes": size,
        "events": len(events.time_us),
        "windows": count,
        "wifi_sport": sports["wifi"],
        **bottlenecks,
        "steal": round(steal, 4),
        "emulated_s": round(float(stats["duration_s"]), 3),
        "lateness_us": stats["lateness_us"],
        "throughput_mbps": {p: flows[n]["throughput_mbps"] for p, n in number.items()},
        "subflows": {p: flows[n] for p, n in number.items()},
        "figures": figures.of(compact.series(events)) | probed["counted"],
        "bottleneck": account,
        "traffic": {k: v for k, v in traffic.items() if k != "event"},
    }
    return RunResult(path, not reasons, tuple(reasons), record)


def _numbers(
    scenario: Scenario, subflows: Mapping[str, Any], sports: Mapping[str, int] | None
) -> dict[str, str]:
    """Number of each path's subflow.

    The kernel numbers subflows from the first; of two the second is the other interface's. Of
    three only the source ports of their sockets tell.
    """
    if len(scenario.data_paths) < 3:
        order = ["wifi", "lte"] if scenario.first == "wifi" else ["lte", "wifi"]
        return {path: str(order.index(path) + 1) for path in scenario.data_paths}
    by_sport = {about["sport"]: number for number, about in subflows.items()}
    found: dict[str, str] = {}
    for path in scenario.data_paths:
        sport = (sports or {}).get(topology.ADDRESS[path])
        if sport not in by_sport:
            raise LabError(f"no subflow over {path} was recorded")
        found[path] = by_sport[sport]
    return found


def _bottlenecks(scenario: Scenario, number: Mapping[str, str]) -> dict[str, str]:
    """Which subflows share: the limiting stage of each, in the order of their numbers."""
    if len(number) < 3:
        return {}
    paths = sorted(number, key=lambda path: int(number[path]))
    return {"bottlenecks": ",".join(getattr(scenario.bottleneck, path) for path in paths)}


def _emulator_t0_s(log: Path) -> float:
    with log.open(encoding="ascii") as file:
        return int(file.readline().removeprefix("#t0_mono_ns=")) / 1e9


def summary(result: RunResult) -> dict[str, Any]:
    """Short form of a result for people and scripts."""
    keys = ["id", "label", "probe", "valid", "reasons", "error", "bytes", "windows", "steal"]
    keys += ["throughput_mbps", "wifi_sport"]
    short = {key: result.record[key] for key in keys if key in result.record}
    if result.path is not None:
        short["path"] = str(result.path)
        short["lateness_p99_us"] = result.record["lateness_us"]["p99"]
    return short
