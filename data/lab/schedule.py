"""A campaign is collected in many labs at once; it can be resumed, and repeats invalid runs.

``<out>/campaign.jsonl`` (append-only) has a line for every run, valid or not;
``<out>/labels.csv`` is made from it and names the valid logs alone.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import probes
from data.lab.labels import LABELS, accepted, logged, write_labels
from data.lab.plan import Campaign
from data.lab.record import RunResult
from data.lab.run import run
from data.lab.runs import carry_out
from data.lab.state import Collection, Job, Progress

OVERHEAD_S = 3.0
"""What a run takes beside its connection."""


def collect(
    campaign: Campaign,
    out: Path,
    jobs: int,
    *,
    limit: int | None = None,
    time_budget_s: float | None = None,
    first_slot: int = 1,
    probe: str | None = None,
    report: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Collect what a campaign still lacks in `out`.

    Parameters
    ----------
    campaign : Campaign
        See `data.lab.plan.load`.
    out : Path
        Gets ``<dataset>/<id>.klog.zst``, campaign.jsonl and labels.csv; several campaigns may
        share it, one after the other.
    jobs : int
        Labs at once; fewer run while the host is short of CPU time.
    limit : int, optional
        At most this many runs now.
    time_budget_s : float, optional
        Begin no run that would end later than this.
    first_slot : int
        Labs are numbered from here; see `data.lab.topology`.
    probe : str, optional
        ``bpf`` or ``ftrace``, the same for all runs; see `data.lab.probes.choose`.
    report : callable, optional
        Called about once a second with a `Progress`.

    Returns
    -------
    dict
        Counts: valid, target, runs, invalid, by reason and by group, bytes.

    Raises
    ------
    UserError
        Another collection runs in `out`, the machine lacks something, or all runs fail.
    """
    out.mkdir(parents=True, exist_ok=True)
    # The file stays: one taken away after its release may be another's lock already, and a third
    # would lock a new file beside it.
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{out}: another collection is running there") from None
        probe = probes.choose(probe)
        collection = Collection(campaign, out, jobs)
        schedule = _Schedule(collection, probe, limit, time_budget_s, report)
        runs = carry_out(schedule, range(first_slot, first_slot + jobs))
        collection.remove_rejected()
        write_labels(out, collection.records)
    return {"runs": runs, **counts(collection)}


class _Schedule:
    """The runs of one call of `collect`, as `data.lab.runs` carries them out."""

    def __init__(
        self,
        collection: Collection,
        probe: str,
        limit: int | None,
        time_budget_s: float | None,
        report: Callable[[Progress], None] | None,
    ) -> None:
        self.collection = collection
        self.probe = probe
        self.limit = limit
        self.time_budget_s = time_budget_s
        self.report = report
        self.started = 0
        self.begun = time.monotonic()
        self.valid_before = collection.progress(self.begun, 0).valid

    def watch(self) -> int:
        self.collection.host.watch()
        if self.report:
            self.report(self.collection.progress(self.begun, self.valid_before))
        return self.collection.host.allowed

    def next_run(self) -> Job | None:
        if self.limit is not None and self.started >= self.limit:
            return None
        job = self.collection.next_job()
        if job is None:
            return None
        if not self._fits(job):
            self.collection.give_back(job)
            self.limit = self.started
            return None
        self.started += 1
        return job

    def _fits(self, job: Job) -> bool:
        if self.time_budget_s is None:
            return True
        needed_s = job.source.draw(job.seed).duration_s + OVERHEAD_S
        return time.monotonic() - self.begun + needed_s <= self.time_budget_s

    def do(self, job: Job, slot: int) -> RunResult:
        scenario = job.source.draw(job.seed)
        folder = self.collection.out / scenario.dataset
        return run(scenario, folder, slot, job.seed, job.id, probe=self.probe)

    def finish(self, job: Job, result: RunResult) -> None:
        self.collection.finish(job, result)
        if self.started % 10 == 0:
            write_labels(self.collection.out, self.collection.records)

    def interrupted(self) -> None:
        # The kernel kills this process's children with it; slots are cleaned when used again.
        write_labels(self.collection.out, self.collection.records)
        os._exit(130)


def counts(collection: Collection) -> dict[str, Any]:
    """Numbers of the whole collection so far, for people and scripts."""
    mine = collection.mine()
    kept = accepted(mine)
    reasons: dict[str, int] = defaultdict(int)
    for record in mine:
        for reason in record["reasons"]:
            reasons[reason.split(":")[0]] += 1
    slow = sum(r["valid"] for r in mine) - len(kept)
    if slow > 0:
        reasons["below-alpha"] = slow
    stays = [r for r in kept.values() if logged(r)]
    size = sum(int(r.get("bytes", 0)) for r in stays)
    return {
        "campaign": collection.campaign.campaign,
        "valid": len(kept),
        "target": sum(group.source.target for group in collection.groups.values()),
        "collected": len(mine),
        "validity_rate": round(len(kept) / len(mine), 4) if mine else None,
        "reasons": dict(reasons),
        "groups": {
            name: {"valid": len(group.valid), "target": group.source.target}
            for name, group in collection.groups.items()
        },
        "bytes": size,
        "mean_kb": round(size / 1e3 / len(stays), 2) if stays else None,
        "labels": str(collection.out / LABELS),
    }
