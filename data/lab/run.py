"""Collect one labelled connection: namespaces, link emulator, probe and traffic, compact log."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import clean, probes, topology
from data.lab.measure import PROBED, Live, emulator_t0_s, measure
from data.lab.process import LabError
from data.lab.record import RunResult, describe, finish
from data.lab.scenario import Scenario
from data.lab.topology import Lab


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
        Seed of jitter, loss and on-off traffic.
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
    tools = probes.prepare(probe, control)
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
            traffic, stats, steal = measure(scenario, lab, seed, work, tools, probe, live)
            log = probes.read(probe, work / PROBED[probe], slot, scenario)
            if live:
                record["emulator_t0_s"] = emulator_t0_s(work / "klink.log")
        except (LabError, UserError, subprocess.SubprocessError, OSError) as error:
            record |= {"valid": False, "reasons": ["failed"], "error": str(error)}
            return RunResult(None, False, ("failed",), record)
        finally:
            topology.remove(lab)
        result = finish(scenario, record, traffic, stats, steal, log, out_dir)
        if keep_csv:
            for file in (PROBED[probe], "klink.log", "klink.json", "klink.conf"):
                shutil.copy(work / file, out_dir / f"{name}.{file}")
    return result
