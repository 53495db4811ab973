"""The state of a collection: which runs are valid, which are under way, which are due again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import probes, validate
from data.lab.host import Host
from data.lab.labels import accepted, logged
from data.lab.plan import Campaign, Source, seed_of, sources
from data.lab.record import RunResult
from data.lab.runs import HOST_RETRIES, append, resume

LOG = "campaign.jsonl"
# A group whose conditions keep failing ends at this multiple of its target.
MAX_DRAWS_PER_TARGET = 2.0
MAX_FAILURES_IN_A_ROW = 8


@dataclass(frozen=True)
class Job:
    """One run to do."""

    source: Source
    index: int
    attempt: int
    seed: int

    @property
    def id(self) -> str:
        """Name of the log."""
        return f"{self.source.name}-{self.index:04d}"


@dataclass(frozen=True)
class Progress:
    """What the caller may show."""

    valid: int
    target: int
    invalid: int
    running: int
    allowed: int
    steal: float
    eta_s: float | None


@dataclass
class _Group:
    """State of one source: which indices are done, running or to be run again."""

    source: Source
    next_index: int = 0
    valid: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    again: list[tuple[int, int]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return (len(self.valid) + len(self.running)) / self.source.target

    @property
    def open(self) -> bool:
        if len(self.valid) + len(self.running) >= self.source.target:
            return False
        return bool(self.again) or self.next_index < self.max_index

    @property
    def max_index(self) -> int:
        return int(self.source.target * MAX_DRAWS_PER_TARGET) + 4


class Collection:
    """One call of `collect`: its groups, its log and how many labs run at once."""

    def __init__(self, campaign: Campaign, out: Path, jobs: int) -> None:
        self.campaign = campaign
        self.out = out
        self.host = Host(jobs)
        self.records = resume(out / LOG)
        self.groups = {s.name: _Group(s) for s in sources(campaign)}
        self.invalid = 0
        self.failures_in_a_row = 0
        self._resume()

    def mine(self) -> list[dict[str, Any]]:
        """Records of this campaign; others may share the folder."""
        return [r for r in self.records if r["campaign"] == self.campaign.campaign]

    def _resume(self) -> None:
        kept = accepted(self.mine())
        last: dict[tuple[str, int], dict[str, Any]] = {}
        for record in self.mine():
            last[record["group"], record["index"]] = record
        for (name, index), record in last.items():
            group = self.groups.get(name)
            if group is None:
                continue
            group.next_index = max(group.next_index, index + 1)
            if record["id"] in kept and (not logged(record) or self._log_path(record).exists()):
                group.valid.add(record["id"])
            elif record["valid"] and record["id"] in kept:
                group.again.append((index, 0))
            elif self._try_again(record):
                group.again.append((index, record["attempt"] + 1))

    def _log_path(self, record: dict[str, Any]) -> Path:
        return self.out / str(record["dataset"]) / probes.log_name(record)

    @staticmethod
    def _try_again(record: dict[str, Any]) -> bool:
        host = validate.HOST_REASONS.intersection(record["reasons"])
        return bool(host) and record["attempt"] < HOST_RETRIES

    def next_job(self) -> Job | None:
        """The next run, from the group that is furthest from its target."""
        todo = [group for group in self.groups.values() if group.open]
        if not todo:
            return None
        group = min(todo, key=lambda g: g.share)
        if group.again:
            index, attempt = group.again.pop(0)
        else:
            index, attempt = group.next_index, 0
            group.next_index += 1
        source = group.source
        # Another attempt keeps the drawn conditions; only packets differ.
        job = Job(source, index, attempt, seed_of(self.campaign, source.name, index))
        group.running.add(job.id)
        return job

    def give_back(self, job: Job) -> None:
        """Not carry out a job that `next_job` has given."""
        self.groups[job.source.name].running.discard(job.id)

    def finish(self, job: Job, result: RunResult) -> None:
        """Append the record, drop an invalid log, and note what has to be run again."""
        record = {
            **result.record,
            "campaign": self.campaign.campaign,
            "group": job.source.name,
            "index": job.index,
            "attempt": job.attempt,
            "alpha_check": job.source.alpha_check,
        }
        if not job.source.keeps_log(job.index):
            record["log"] = False
        if result.path is not None and not (result.valid and logged(record)):
            result.path.unlink(missing_ok=True)
        append(self.out / LOG, record)
        self.records.append(record)
        group = self.groups[job.source.name]
        group.running.discard(job.id)
        if result.valid:
            group.valid.add(job.id)
            self.failures_in_a_row = 0
            if job.source.alpha_check:
                self._drop_slow(group)
            return
        self.invalid += 1
        if self._try_again(record):
            group.again.append((job.index, job.attempt + 1))
        self.failures_in_a_row = self.failures_in_a_row + 1 if "failed" in result.reasons else 0
        if self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise UserError(
                f"{self.failures_in_a_row} runs in a row failed, the last one: "
                f"{record.get('error')}; run: cczoo lab doctor"
            )

    def _drop_slow(self, group: _Group) -> None:
        # A run that falls below alpha times the best stays below: the best only grows.
        records = [r for r in self.mine() if r["id"] in group.valid and r["valid"]]
        for name in validate.alpha_failures(records):
            group.valid.discard(name)
            self.invalid += 1

    def progress(self, begun: float, valid_before: int) -> Progress:
        """Counts now, and the time left at the pace so far."""
        valid = sum(len(group.valid) for group in self.groups.values())
        target = sum(group.source.target for group in self.groups.values())
        running = sum(len(group.running) for group in self.groups.values())
        new = valid - valid_before
        elapsed = time.monotonic() - begun
        eta = elapsed / new * (target - valid) if new > 0 else None
        return Progress(
            valid, target, self.invalid, running, self.host.allowed, self.host.steal, eta
        )

    def remove_rejected(self) -> int:
        """Delete logs of this campaign that labels.csv doesn't name."""
        kept = accepted(self.mine())
        paths = {self._log_path(r) for r in self.mine() if r["id"] not in kept}
        found = [path for path in paths if path.exists()]
        for path in found:
            path.unlink()
        return len(found)
