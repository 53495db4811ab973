"""Carry out live runs in labs of their own; each is kept as a line of ``live.jsonl``."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from data.lab import agent, build, coupled, runs
from data.lab.measure import Live
from data.lab.registered import operations
from data.lab.run import run as run_lab
from export.bpf import live as live_kernel
from export.bpf.live import Controller
from export.bundle.manifest import Bundle
from export.feature_code.sbd import made_for
from pipelines.live import check as live_check
from pipelines.live.record import Task, record

LOG = "live.jsonl"
# Ends of the traffic should not wait for whoever else uses the machine.
NICENESS = -10


def carry_out(
    todo: Sequence[Task],
    slots: Sequence[int],
    out: Path,
    bundle: Bundle,
    controller: Controller,
    *,
    check: bool = False,
) -> None:
    """Do all tasks; the kernel's counters over that time are kept as a record too.

    Parameters
    ----------
    todo : sequence of Task
        The tasks, in the order in which they are begun.
    slots : sequence of int
        Numbers of the labs; as many runs are under way at once.
    out : Path
        Folder that gets ``live.jsonl`` and the folder ``logs``.
    bundle : Bundle
        The exported model.
    controller : Controller
        The same model, loaded into the kernel.
    check : bool
        Whether to compute the features of each window in Python too.
    """
    coupled.ensure(build.TARGETS["lia"])
    programs = {"cczoo_sbd": controller.programs, "bpf_lia": operations(coupled.NAME)}
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    work = _LiveRuns(todo, len(slots), out, bundle, controller, check)
    with live_kernel.statistics():
        before = {name: live_kernel.counts(p) for name, p in programs.items()}
        runs.carry_out(work, slots)
        bpf = {
            name: live_kernel.since(before[name], live_kernel.counts(p))
            for name, p in programs.items()
        }
    session = {"kind": "session", "model": work.model, "runs": len(todo), "bpf": bpf}
    runs.append(out / LOG, session)


class _LiveRuns:
    """Tasks as `data.lab.runs` carries them out; one that the host has spoilt is repeated next."""

    def __init__(
        self,
        todo: Sequence[Task],
        jobs: int,
        out: Path,
        bundle: Bundle,
        controller: Controller,
        check: bool,
    ) -> None:
        self.todo = deque(todo)
        self.jobs = jobs
        self.out = out
        self.model = str(bundle.manifest["model_hash"])
        self.features = bundle.features
        self.settings = made_for(bundle)[0]
        self.controller = controller
        self.check = check

    def watch(self) -> int:
        return self.jobs

    def next_run(self) -> Task | None:
        return self.todo.popleft() if self.todo else None

    def do(self, task: Task, slot: int) -> dict[str, Any]:
        logs = self.out / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        verdicts = logs / f"{task.name}.verdicts.jsonl"
        samples = logs / f"{task.name}.samples" if self.check else None
        controller = self.controller
        live = Live(task.cc)
        if task.cc == "smartsbd":
            live = Live(
                controller.name,
                lambda where: agent.command(
                    controller.agent,
                    controller.decisions,
                    where,
                    task.drawn.first,
                    verdicts,
                    samples,
                ),
            )
        result = run_lab(task.drawn, logs, slot, task.seed, task.name, probe="bpf", live=live)
        log = verdicts if live.agent and "traffic" in result.record else None
        kept = record(task, result.record, log, self.model)
        if log and samples:
            kept["check"] = live_check.compare(kept, samples, self.features, self.settings)
        return kept

    def finish(self, task: Task, kept: dict[str, Any]) -> None:
        runs.append(self.out / LOG, kept)
        outcome = "valid" if kept["valid"] else f"invalid ({', '.join(kept['reasons'])})"
        print(f"{task.name}: {outcome}", file=sys.stderr, flush=True)
        if not kept["valid"] and task.attempt < runs.HOST_RETRIES:
            self.todo.appendleft(replace(task, attempt=task.attempt + 1))

    def interrupted(self) -> None:
        """Do nothing: the runs under way go on to their end and are kept."""
