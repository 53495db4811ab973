"""One driven run: a lab, its engine and proxy, and what is kept of them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.lab import decisions, follow
from data.lab.measure import Live
from data.lab.process import running
from data.lab.run import run as run_lab
from data.lab.scenario import Scenario
from data.lab.validate import HOST_REASONS
from export.bpf import live as live_kernel
from models.drive.policies import Driving

KERNEL_CONTROLS = ("reno", "cubic", "bbr", "lia")
BUSY = ("pkts_acked", "cong_avoid")
"""Operations of the control that run with each ACK."""
PROXY_PRIORITY, ENGINE_PRIORITY = 8, 7
"""Below the link emulator's."""
ENGINE_READY_S = 300.0
"""Loading a network's library takes most of a minute on a busy machine."""


@dataclass(frozen=True)
class Task:
    """A run to be done.

    Attributes
    ----------
    scenario, site : str
        Campaign and its group.
    control : str
        One of `KERNEL_CONTROLS`; ``agent``, ``agent+5ms`` (an engine that far away) or ``tree``.
    repeat, seed : int
    drawn : Scenario
    """

    scenario: str
    site: str
    control: str
    repeat: int
    seed: int
    drawn: Scenario

    @property
    def name(self) -> str:
        """Name of the task's files."""
        return f"{self.scenario}-{self.site}-{self.control}-{self.repeat}"

    @property
    def behind_ms(self) -> int:
        """How far away the engine is."""
        return behind_ms(self.control) or 0


def behind_ms(control: str) -> int | None:
    """How far away the engine of a control is; None where it has no engine."""
    kind, _, more = control.partition("+")
    if kind != "agent" or (more and not more.removesuffix("ms").isdecimal()):
        return None
    return int(more.removesuffix("ms") or 0) if more else 0


@contextlib.contextmanager
def engine(driving: Driving, policy: str, work: Path) -> Iterator[str]:
    """Have a decision engine run; yields its socket's path.

    Parameters
    ----------
    driving : Driving
    policy : str
        What the engine is told to load.
    work : Path
        Folder for its socket.
    """
    where = str(work / "engine.socket")
    command = [sys.executable, "-m", "models.drive.engine", policy, "--listen", where]
    command += ["--fifo", str(ENGINE_PRIORITY)]
    with running(command, f"engine of {driving.name}", ready_s=ENGINE_READY_S):
        yield where


def carry_out(
    task: Task, out: Path, slot: int, control: follow.Control | None, where: str | None
) -> dict[str, Any]:
    """Do one run; its record.

    Parameters
    ----------
    task : Task
    out : Path
        Folder that gets ``logs``.
    slot : int
        Number of the lab.
    control : Control, optional
        The control that follows a policy, of tasks that have one.
    where : str, optional
        The engine's socket.
    """
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    noted = logs / f"{task.name}.decisions.csv"
    live = Live(task.control, nap_s=0.0)
    if control is not None:
        held = control

        def agent(lab: Any) -> list[str]:
            return follow.proxy(
                held, noted, where, task.behind_ms, lab.inode("c"), fifo=PROXY_PRIORITY
            )

        live = Live(control.name, agent, nap_s=0.0)
    before = live_kernel.counts(dict(control.programs)) if control else {}
    result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
    kept = _record(task, result.record)
    if control is not None and noted.is_file():
        kept["agent"] = decisions.summed_up(noted)
        spent = live_kernel.since(before, live_kernel.counts(dict(control.programs)))
        acks = max(1, spent["pkts_acked"]["runs"])
        kept["ns_per_ack"] = round(sum(spent[name]["ns"] for name in BUSY) / acks, 1)
    return kept


def _record(task: Task, record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a lab's record is kept; only the host decides whether it counts."""
    figures = record.get("figures") or {}
    # A stage that never queued is an agent's success, not a reason against the run.
    reasons = [r for r in record["reasons"] if r in HOST_REASONS or r == "failed"]
    kept = {
        "scenario": task.scenario,
        "site": task.site,
        "control": task.control,
        "repeat": task.repeat,
        "seed": task.seed,
        "valid": not reasons and bool(figures),
        "reasons": reasons or ([] if figures else ["no-figures"]),
        "drawn": task.drawn.model_dump(exclude_defaults=True, mode="json"),
    }
    for name in ("error", "kernel", "started", "load", "steal", "lateness_us", "emulated_s"):
        if name in record:
            kept[name] = record[name]
    if not figures:
        return kept
    flows = figures["subflows"].values()
    total = sum(flow["goodput_mbps"] for flow in flows)
    # Over all ACKs, as the simulator has it: a path with more of them counts for more.
    weighted = sum(flow["rtt_ms"] * flow["goodput_mbps"] for flow in flows)
    segments = sum(flow["goodput_mbps"] for flow in flows) * 1e6 * task.drawn.duration_s / 8 / 1448
    return kept | {
        "goodput_mbps": round(total, 4),
        "rtt_ms": round(weighted / max(total, 1e-9), 4),
        "rtt_p95_ms": figures["rtt_p95_ms"],
        "retransmit_rate": round(figures["retransmits"] / max(1.0, segments), 6),
        "subflows": figures["subflows"],
    }
