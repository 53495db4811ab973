"""One driven run: a lab, its engine and proxy, and what is kept of them."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.lab import decisions, follow, receiver
from data.lab.measure import Live
from data.lab.process import running
from data.lab.run import run as run_lab
from data.lab.topology import PORT, Lab
from export.bpf import live as live_kernel
from models.drive.driving import Driving
from pipelines.drive.kept import kept_of
from pipelines.drive.tasks import NUWA, NUWA_TREE, TREE, Task, behind_ms

BUSY = ("pkts_acked", "cong_avoid")
"""Operations of the control that run with each ACK."""
PROXY_PRIORITY, ENGINE_PRIORITY = 8, 7
"""Below the link emulator's."""
ENGINE_READY_S = 300.0
"""Loading a network's library takes most of a minute on a busy machine."""


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
    receiver, tuned : Path, optional
        Nuwa's programs, compiled: with a fixed k, and with a tree that chooses it.
    gain, target_ms : float
        Nuwa's k and T_d.
    queue : Path, optional
        Shared object of the policy that runs the bottleneck's queue.
    """

    control: follow.Control | None = None
    engine: str | None = None
    inside: follow.Control | None = None
    receiver: Path | None = None
    tuned: Path | None = None
    gain: float = 7.0
    target_ms: float = 50.0
    queue: Path | None = None


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
    if task.sending in (NUWA, NUWA_TREE):
        return _received(task, logs, slot, means)
    driven = behind_ms(task.control) is not None
    control = means.control if driven else means.inside if task.sending == TREE else None
    if control is None:
        live = Live(task.sending, nap_s=0.0, queues=_queues(task, means))
        result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
        return kept_of(task, result.record)
    noted = logs / f"{task.name}.decisions.csv"

    def agent(lab: Any) -> list[str]:
        where = means.engine if driven else None
        netns = lab.inode("c")
        return follow.proxy(control, noted, where, task.behind_ms, netns, fifo=PROXY_PRIORITY)

    before = live_kernel.counts(dict(control.programs))
    live = Live(control.name, agent, nap_s=0.0, queues=_queues(task, means))
    result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
    kept = kept_of(task, result.record)
    if noted.is_file():
        kept["agent"] = decisions.summed_up(noted)
        spent = live_kernel.since(before, live_kernel.counts(dict(control.programs)))
        acks = max(1, spent["pkts_acked"]["runs"])
        kept["ns_per_ack"] = round(sum(spent[name]["ns"] for name in BUSY) / acks, 1)
    return kept


def _queues(task: Task, means: Means) -> dict[str, Path]:
    """Stages whose queue a policy runs in this run, and the policy."""
    if task.control == task.sending or means.queue is None:
        return {}
    return dict.fromkeys(task.drawn.bottlenecks, means.queue)


def _received(task: Task, logs: Path, slot: int, means: Means) -> dict[str, Any]:
    """A run of CUBIC whose receiver is Nuwa's."""
    seen: dict[str, Any] = {}

    @contextlib.contextmanager
    def beside(lab: Lab) -> Iterator[None]:
        program = means.tuned if task.sending == NUWA_TREE else means.receiver
        assert program is not None
        with (
            tempfile.TemporaryDirectory(prefix="cczoo-nuwa-") as work,
            receiver.attached(program, lab.namespace("s"), "srv", Path(work)) as at,
        ):
            at.set(means.target_ms, means.gain, PORT)
            before = live_kernel.counts(at.costs())
            yield
            seen["flows"] = at.flows()
            seen["spent"] = live_kernel.since(before, live_kernel.counts(at.costs()))

    live = Live("cubic", nap_s=0.0, beside=beside, queues=_queues(task, means))
    result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
    kept = kept_of(task, result.record)
    if seen:
        spent = seen["spent"]
        kept["receiver"] = {
            "rewritten": sum(flow["rewritten"] for flow in seen["flows"]),
            "unread": sum(flow["unread"] for flow in seen["flows"]),
            "decisions": sum(flow["decisions"] for flow in seen["flows"]),
            "gain": means.gain,
            "target_ms": means.target_ms,
            **{
                f"{way}_ns": round(one["ns"] / max(1, one["runs"]), 1) for way, one in spent.items()
            },
        }
    return kept
