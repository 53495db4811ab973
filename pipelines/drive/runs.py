"""One driven run: a lab, its engine and proxy, and what is kept of them."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.lab import decisions, follow, receiver
from data.lab.measure import Live
from data.lab.process import running
from data.lab.run import run as run_lab
from data.lab.scenario import Scenario
from data.lab.topology import PORT, Lab
from data.lab.validate import HOST_REASONS
from export.bpf import live as live_kernel
from models.drive.driving import Driving

KERNEL_CONTROLS = ("reno", "cubic", "bbr", "lia")
TREE, NUWA = "tree", "nuwa"
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
        One of `KERNEL_CONTROLS`; ``agent``, ``agent+5ms`` (an engine that far away), ``tree`` (the
        policy inside the control) or ``nuwa`` (Nuwa's receiver, CUBIC sending).
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
    """How far away the engine of a control is; None if it has no engine."""
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


@dataclass(frozen=True)
class Means:
    """What the drivers of a run need; None of what isn't loaded.

    Attributes
    ----------
    control : Control, optional
        The control that follows an engine's orders.
    engine : str, optional
        The engine's socket.
    inside : Control, optional
        The control with a policy inside.
    receiver : Path, optional
        Nuwa's programs, compiled.
    gain, target_ms : float
        Nuwa's k and T_d.
    """

    control: follow.Control | None = None
    engine: str | None = None
    inside: follow.Control | None = None
    receiver: Path | None = None
    gain: float = 7.0
    target_ms: float = 50.0


def carry_out(task: Task, out: Path, slot: int, means: Means) -> dict[str, Any]:
    """Do one run; its record.

    Parameters
    ----------
    task : Task
    out : Path
        Folder that gets ``logs``.
    slot : int
        Number of the lab.
    means : Means
    """
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    if task.control == NUWA:
        return _received(task, logs, slot, means)
    driven = behind_ms(task.control) is not None
    control = means.control if driven else means.inside if task.control == TREE else None
    if control is None:
        result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf",
                         live=Live(task.control, nap_s=0.0))  # fmt: skip
        return _record(task, result.record)
    noted = logs / f"{task.name}.decisions.csv"

    def agent(lab: Any) -> list[str]:
        where = means.engine if driven else None
        netns = lab.inode("c")
        return follow.proxy(control, noted, where, task.behind_ms, netns, fifo=PROXY_PRIORITY)

    before = live_kernel.counts(dict(control.programs))
    live = Live(control.name, agent, nap_s=0.0)
    result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
    kept = _record(task, result.record)
    if noted.is_file():
        kept["agent"] = decisions.summed_up(noted)
        spent = live_kernel.since(before, live_kernel.counts(dict(control.programs)))
        acks = max(1, spent["pkts_acked"]["runs"])
        kept["ns_per_ack"] = round(sum(spent[name]["ns"] for name in BUSY) / acks, 1)
    return kept


def _received(task: Task, logs: Path, slot: int, means: Means) -> dict[str, Any]:
    """A run of CUBIC whose receiver is Nuwa's."""
    seen: dict[str, Any] = {}

    @contextlib.contextmanager
    def beside(lab: Lab) -> Iterator[None]:
        assert means.receiver is not None
        with (
            tempfile.TemporaryDirectory(prefix="cczoo-nuwa-") as work,
            receiver.attached(means.receiver, lab.namespace("s"), "srv", Path(work)) as at,
        ):
            at.set(means.target_ms, means.gain, PORT)
            before = live_kernel.counts(at.costs())
            yield
            seen["flows"] = at.flows()
            seen["spent"] = live_kernel.since(before, live_kernel.counts(at.costs()))

    live = Live("cubic", nap_s=0.0, beside=beside)
    result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
    kept = _record(task, result.record)
    if seen:
        spent = seen["spent"]
        kept["receiver"] = {
            "rewritten": sum(flow["rewritten"] for flow in seen["flows"]),
            "unread": sum(flow["unread"] for flow in seen["flows"]),
            "gain": means.gain,
            "target_ms": means.target_ms,
            **{
                f"{way}_ns": round(one["ns"] / max(1, one["runs"]), 1) for way, one in spent.items()
            },
        }
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
