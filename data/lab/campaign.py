"""Collecting a campaign: many labs side by side, resumable, invalid runs collected again.

``<out>/campaign.jsonl`` (append-only) has a line for every run, valid or not;
``<out>/labels.csv`` is made from it and names the valid logs alone.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.lab import probes, validate
from data.lab.plan import Campaign, Source, seed_of, sources
from data.lab.run import RunResult, cpu_times, run, steal_share

LOG = "campaign.jsonl"
LABELS = "labels.csv"
HOST_RETRIES = 3
# A group whose conditions keep failing ends at this multiple of its target.
MAX_DRAWS_PER_TARGET = 2.0
MAX_FAILURES_IN_A_ROW = 8
OVERHEAD_S = 3.0
STAGGER_S = 0.7
STEAL_CHECK_S = 5.0
BACK_OFF_STEAL, RECOVERED_STEAL = 0.03, 0.01

# Columns of labels.csv after `source`; ports, conditions and where the record comes from.
LABEL_COLUMNS = (
    "label", "dataset", "family", "case", "cc", "wifi_sport", "duration_s", "rtt_wifi_ms",
    "rtt_lte_ms", "rate_wifi_mbps", "rate_lte_mbps", "queue_wifi_bytes", "queue_lte_bytes",
    "cross_traffic", "first", "group", "alpha_own", "seed", "kernel", "started",
)  # fmt: skip
# And those that only a collection with connections of three subflows has.
THREE_COLUMNS = ("rtt_wired_ms", "rate_wired_mbps", "queue_wired_bytes", "bottlenecks")


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


def read_log(out: Path) -> list[dict[str, Any]]:
    """Records of a collection, in order; an unfinished last line of a killed run is ignored."""
    path = out / LOG
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line))
    return records


def mend_log(out: Path) -> None:
    """Cut off the unfinished last line of a killed run, or the next one would be lost with it."""
    path = out / LOG
    if path.exists():
        whole = path.read_bytes().rfind(b"\n") + 1
        os.truncate(path, whole)


def accepted(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Valid records by id, after the paper's validation of each group by its best throughput."""
    valid = {r["id"]: r for r in records if r["valid"]}
    failed = validate.alpha_failures(valid.values())
    return {name: r for name, r in valid.items() if name not in failed}


def write_labels(out: Path, records: list[dict[str, Any]]) -> int:
    """Write labels.csv anew under a temporary name, then rename; returns its rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    kept = filter(_logged, accepted(records).values())
    rows = sorted(kept, key=lambda r: (r["dataset"], r["id"]))
    three = any("bottlenecks" in record for record in rows)
    columns = [*LABEL_COLUMNS, *(THREE_COLUMNS if three else ())]
    writer.writerow(["source", *columns])
    slow = validate.alpha_failures(rows, own=True)
    for record in rows:
        if record.get("alpha_check"):
            record = {**record, "alpha_own": "no" if record["id"] in slow else "yes"}
        source = f"{record['dataset']}/{probes.log_name(record)}"
        writer.writerow([source, *(_cell(record.get(column)) for column in columns)])
    temporary = out / f".{LABELS}.tmp"
    temporary.write_text(text.getvalue(), encoding="utf-8")
    os.replace(temporary, out / LABELS)
    return len(rows)


def _logged(record: dict[str, Any]) -> bool:
    """Whether the log stays beside its record; see `data.lab.plan.Group`."""
    return bool(record.get("log", True))


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


class Collection:
    """One call of `collect`: its groups, its log and how many labs run at once."""

    def __init__(
        self, campaign: Campaign, out: Path, jobs: int, first_slot: int, probe: str
    ) -> None:
        self.campaign = campaign
        self.probe = probe
        self.out = out
        self.jobs = self.allowed = jobs
        self.slots = list(range(first_slot, first_slot + jobs))
        self.records = read_log(out)
        self.groups = {s.name: _Group(s) for s in sources(campaign)}
        self.invalid = 0
        self.failures_in_a_row = 0
        self.steal = 0.0
        self._cpu = cpu_times()
        self._cpu_at = time.monotonic()
        self._resume()

    def _mine(self) -> list[dict[str, Any]]:
        return [r for r in self.records if r["campaign"] == self.campaign.campaign]

    def _resume(self) -> None:
        kept = accepted(self._mine())
        last: dict[tuple[str, int], dict[str, Any]] = {}
        for record in self._mine():
            last[record["group"], record["index"]] = record
        for (name, index), record in last.items():
            group = self.groups.get(name)
            if group is None:
                continue
            group.next_index = max(group.next_index, index + 1)
            if record["id"] in kept and (not _logged(record) or self._log_path(record).exists()):
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

    def do(self, job: Job, slot: int) -> RunResult:
        """Draw and run one job."""
        scenario = job.source.draw(job.seed)
        return run(scenario, self.out / scenario.dataset, slot, job.seed, job.id, probe=self.probe)

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
        if result.path is not None and not (result.valid and _logged(record)):
            result.path.unlink(missing_ok=True)
        with (self.out / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record, separators=(",", ":")) + "\n")
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
        # Whoever falls below alpha times the best stays below: the best only grows.
        records = [r for r in self._mine() if r["id"] in group.valid and r["valid"]]
        for name in validate.alpha_failures(records):
            group.valid.discard(name)
            self.invalid += 1

    def watch_host(self) -> None:
        """Run fewer labs while the hypervisor takes CPU time away, more when it stops."""
        now = time.monotonic()
        if now - self._cpu_at < STEAL_CHECK_S:
            return
        cpu = cpu_times()
        self.steal = steal_share(self._cpu, cpu)
        self._cpu, self._cpu_at = cpu, now
        if self.steal > BACK_OFF_STEAL:
            self.allowed = max(1, self.allowed // 2)
        elif self.steal < RECOVERED_STEAL and self.allowed < self.jobs:
            self.allowed += 1

    def progress(self, begun: float, valid_before: int) -> Progress:
        """Counts now, and the time left at the pace so far."""
        valid = sum(len(group.valid) for group in self.groups.values())
        target = sum(group.source.target for group in self.groups.values())
        running = sum(len(group.running) for group in self.groups.values())
        new = valid - valid_before
        elapsed = time.monotonic() - begun
        eta = elapsed / new * (target - valid) if new > 0 else None
        return Progress(valid, target, self.invalid, running, self.allowed, self.steal, eta)

    def remove_rejected(self) -> int:
        """Delete logs of this campaign that labels.csv doesn't name."""
        kept = accepted(self._mine())
        paths = {self._log_path(r) for r in self._mine() if r["id"] not in kept}
        found = [path for path in paths if path.exists()]
        for path in found:
            path.unlink()
        return len(found)


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
        mend_log(out)
        collection = Collection(campaign, out, jobs, first_slot, probe)
        runs = _loop(collection, limit, time_budget_s, report)
        collection.remove_rejected()
        write_labels(out, collection.records)
    return {"runs": runs, **counts(collection)}


def _loop(
    collection: Collection,
    limit: int | None,
    time_budget_s: float | None,
    report: Callable[[Progress], None] | None,
) -> int:
    begun = time.monotonic()
    before = collection.progress(begun, 0).valid
    started = 0
    drained = False
    busy: dict[Future[RunResult], tuple[Job, int]] = {}
    with ThreadPoolExecutor(collection.jobs) as pool:
        try:
            while busy or not drained:
                collection.watch_host()
                room = len(busy) < collection.allowed and (limit is None or started < limit)
                job = collection.next_job() if room else None
                if job is not None and not _fits(job, begun, time_budget_s):
                    collection.groups[job.source.name].running.discard(job.id)
                    job, limit = None, started
                if job is not None:
                    slot = collection.slots.pop(0)
                    busy[pool.submit(collection.do, job, slot)] = (job, slot)
                    started += 1
                drained = job is None and not busy
                done, _ = wait(busy, STAGGER_S if job else 1.0, FIRST_COMPLETED)
                for future in done:
                    finished, slot = busy.pop(future)
                    collection.slots.append(slot)
                    collection.finish(finished, future.result())
                    if started % 10 == 0:
                        write_labels(collection.out, collection.records)
                if report:
                    report(collection.progress(begun, before))
        except KeyboardInterrupt:
            # The kernel kills this process's children with it; slots are cleaned when used again.
            write_labels(collection.out, collection.records)
            os._exit(130)
    return started


def _fits(job: Job, begun: float, time_budget_s: float | None) -> bool:
    if time_budget_s is None:
        return True
    needed_s = job.source.draw(job.seed).duration_s + OVERHEAD_S
    return time.monotonic() - begun + needed_s <= time_budget_s


def counts(collection: Collection) -> dict[str, Any]:
    """Numbers of the whole collection so far, for people and scripts."""
    mine = collection._mine()
    kept = accepted(mine)
    reasons: dict[str, int] = defaultdict(int)
    for record in mine:
        for reason in record["reasons"]:
            reasons[reason.split(":")[0]] += 1
    slow = sum(r["valid"] for r in mine) - len(kept)
    if slow > 0:
        reasons["below-alpha"] = slow
    logged = [r for r in kept.values() if _logged(r)]
    size = sum(int(r.get("bytes", 0)) for r in logged)
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
        "mean_kb": round(size / 1e3 / len(logged), 2) if logged else None,
        "labels": str(collection.out / LABELS),
    }
