"""A month of a fleet: logs every day, drift noticed, one group's model retrained and promoted.

Each day every group of users writes some logs. Its connections have two subflows; where they share
a bottleneck, they see one queue. On one day the network of one group changes: from then on a
scheduler swings both paths together unless they share a bottleneck, behind which each path is
shaken on its own. Each night does what docs/fleet.md shows, in this process, whose caches are
emptied before it: `take_cpu_s` is what ingest, features and compacting take without the start of
Python.

`python benchmarks/month.py [--days 30] [--groups 20] [--change 17] [--logs 8]`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import io
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

FIRST_DAY = datetime.date(2026, 11, 1)
SPAN_MS, ACK_MS, MIN_RTT_US = 5000, 20, 20_000
MODEL = "smartsbd-dt"
SEED = 1
MOST_GROWTH = 1.1
"""What the last nights may cost, with the first ones as 1."""
PARAMS = """
models:
  sbd:
    workers: 0
    bootstrap: 100
    protocol: {holdout: 0.25}
    selection: {neighbours: 3, seeds: 2}
    drift: {permutations: 100, trees: 10}
    groups: {folds: 3, repeats: 1, inner_folds: 2, grid: 2, min_connections: 6, min_windows: 20}
promotion:
  gates:
    test-set: {margin: 0.02, min_windows: 3}
    certificate: {targets: [c]}
"""


def queue(rng: np.random.Generator, steps: int, swing_ms: float) -> np.ndarray:
    """Delay in front of a bottleneck in us: a window that grows, is halved, and grows again."""
    delay = np.empty(steps)
    level = rng.uniform(0, swing_ms)
    for i in range(steps):
        level += rng.exponential(0.5) * swing_ms / 15
        if level > swing_ms * rng.uniform(0.8, 1.2):
            level *= rng.uniform(0.3, 0.6)
        delay[i] = level
    return delay * 1000


def write_log(path: Path, rng: np.random.Generator, shared: bool, changed: bool) -> None:
    """One connection in the lab's compact form (data/lab/README.md)."""
    steps = SPAN_MS // ACK_MS
    swing = rng.uniform(8, 20)
    first = queue(rng, steps, swing)
    second = first if shared else queue(rng, steps, rng.uniform(8, 20))
    common: np.ndarray | float = 0.0
    if changed and shared:
        first, second = (first + queue(rng, steps, 2 * swing) for _ in range(2))
    elif changed:
        common = queue(rng, steps, 2 * swing)
        first, second = 0.1 * first, 0.1 * second
    series = [
        MIN_RTT_US * scale + one + common + rng.normal(0, 300, steps).clip(-900, 900)
        for scale, one in ((1.0, first), (1.15, second))
    ]
    lines = []
    before, last_us = [0, 0], 0
    for i in range(steps):
        for flow in (0, 1):
            now_us = i * ACK_MS * 1000 + flow * 400 + int(rng.integers(0, 3000))
            now_us = max(now_us, last_us)
            rtt = int(series[flow][i])
            queued = (first, second)[flow] + common
            if i == 10 or (i > 10 and queued[i] < 0.7 * queued[i - 1]):
                lines.append((now_us - last_us, f"S,{flow + 1},0,3"))
                lines.append((0, f"R,{flow + 1}"))
                lines.append((0, f"S,{flow + 1},3,0"))
                last_us = now_us
            lines.append((now_us - last_us, f"{flow + 1},1424,{rtt - before[flow]},,"))
            before[flow], last_us = rtt, now_us
    meta = {
        "t0_us": 10**9,
        "token": f"{int(rng.integers(0, 2**32)):08x}",
        "kernel": "simulated",
        "cc": "lia",
        "subflows": {"1": {"sport": 40001, "dport": 443}, "2": {"sport": 40002, "dport": 443}},
    }
    head = [
        "#cczoo-klog 1",
        f"#meta {json.dumps(meta)}",
        "#columns dt_us,sf,ack,rtt_us,cwnd,srtt_us",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*head, *(f"{dt},{rest}" for dt, rest in lines)]) + "\n")


def write_day(folder: Path, day: int, groups: int, logs: int, change: int, seed: int) -> None:
    """All logs of one day and their labels; the last group's network changes on day ``change``."""
    rows = ["source,label,dataset,isp"]
    for group in range(groups):
        rng = np.random.default_rng([seed, day, group])
        for number in range(logs):
            name = f"g{group:02d}-{number:03d}.klog"
            changed = group == groups - 1 and day >= change
            write_log(folder / name, rng, shared=number % 2 == 0, changed=changed)
            rows.append(f"{name},{('SB', 'NSB')[number % 2]},fleet,g{group:02d}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")


def cczoo(*words: Any, allowed: tuple[int, ...] = (0,)) -> Any:
    """What a command prints as JSON."""
    from pipelines.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main([*map(str, words), "--json"])
    if code not in allowed:
        raise SystemExit(f"cczoo {' '.join(map(str, words))}: exit status {code}")
    return json.loads(printed.getvalue()) if printed.getvalue() else None


class Fleet:
    """A store, a registry, and what each night does with them."""

    def __init__(self, folder: Path, by: str = "isp") -> None:
        self.store = folder / "store"
        self.folder = folder
        self.by = by
        self.params = folder / "params.yaml"
        self.params.write_text(PARAMS)
        self.learned: dict[str, str] = {}
        """Group -> condition of what its champion learned from."""
        self.first = ""
        self.refused: list[str] = []

    def take(self, logs: Path) -> dict[str, Any]:
        """Ingest a day, compute its features, and put small files together."""
        options = ("--root", self.folder, "--jobs", 1)
        taken = cczoo("ingest", logs, "--into", self.store, *options)
        features = cczoo("features", "sbd", "--store", self.store, "--jobs", 1)
        kept = cczoo("store", "compact", self.store, "--keep-days", 7)
        return {
            "logs": taken["logs"]["new"],
            "windows": features["windows"],
            "files": kept["files"],
        }

    def drifted(self, days: str) -> list[str]:
        """Groups whose models the days' logs tell to train again."""
        found = []
        groups = [("", self.first)] + [(f"{self.by} = '{g}'", w) for g, w in self.learned.items()]
        own = " and ".join(f"{self.by} != '{group}'" for group in self.learned)
        for one, learned in groups:
            only = f" and {one or own}" if one or own else ""
            options = ("--where", f"{days}{only}", "--reference-where", f"{learned}{only}")
            told = cczoo(
                "drift", "--model", f"registry:{MODEL}@champion", "--store", self.store,
                "--by", self.by, *options, "--params", self.params, allowed=(0, 1),
            )  # fmt: skip
            named = [row for row in told["groups"] if row["group"] != "ALL"]
            found += [
                row["group"].partition("=")[2] for row in named if row["verdict"] == "retrain"
            ]
        return sorted(found)

    def train(self, days: str) -> dict[str, str]:
        """Train on some days; group -> decision."""
        told = cczoo(
            "train", "sbd", "groups", "--by", self.by, "--store", self.store, "--where", days,
            "--out", self.folder / "trained", "--params", self.params,
        )  # fmt: skip
        return {row["values"][self.by]: row["decision"] for row in told["groups"]}

    def promote(self, days: str, group: str | None = None) -> bool:
        """Ask the gates for the pooled model, or one group's own."""
        name = MODEL if group is None else f"{MODEL}?group={self.by}={group}"
        where = days if group is None else f"{days} and {self.by} = '{group}'"
        told = cczoo(
            "promote", name, "--store", self.store, "--where", where, "--params", self.params,
            "--reason", "the nightly job", allowed=(0, 1),
        )  # fmt: skip
        self.refused += told["problems"]
        return bool(told["ok"])


def _forget_all() -> None:
    """Let a night begin as in a new process, without what the others have left in memory."""
    from data.fleet import ledger

    ledger._few.cache_clear()
    gc.collect()
    gc.freeze()


def growth(history: list[dict[str, Any]]) -> dict[str, float]:
    """CPU seconds of taking a day, at the end beside the beginning.

    A single night differs by a fifth with what else the machine does: medians over five tell.
    """
    spent = [night["take_cpu_s"] for night in history]
    first, last = statistics.median(spent[1:6]), statistics.median(spent[-5:])
    return {
        "second_night_cpu_s": spent[1],
        "last_night_cpu_s": spent[-1],
        "ratio": spent[-1] / spent[1],
        "first_nights_cpu_s": first,
        "last_nights_cpu_s": last,
        "median_ratio": last / first,
    }


def nights(folder: Path, days: int, groups: int, change: int, logs: int) -> list[dict[str, Any]]:
    """The days without drift and models: what only grows with the store."""
    fleet, history = Fleet(folder), []
    for day in range(1, days + 1):
        place = folder / "logs" / (FIRST_DAY + datetime.timedelta(days=day - 1)).isoformat()
        write_day(place, day, groups, logs, change, SEED)
        _forget_all()
        cpu = time.process_time()
        taken = fleet.take(place)
        history.append({"day": day, **taken, "take_cpu_s": time.process_time() - cpu})
    return history


def month(
    folder: Path,
    days: int,
    groups: int,
    change: int,
    logs: int,
    learned: int = 5,
    last: int = 4,
    before: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """Live through the days; what each has cost, and what was noticed, trained and promoted.

    The first models learn from ``learned`` days. Drift is looked for in the ``last`` ones, and a
    model that drifted learns from them. ``before`` is called before each night.
    """
    fleet = Fleet(folder)
    history = []
    for day in range(1, days + 1):
        date = (FIRST_DAY + datetime.timedelta(days=day - 1)).isoformat()
        place = folder / "logs" / date
        write_day(place, day, groups, logs, change, SEED)
        night: dict[str, Any] = {"day": day}
        before()
        start, cpu = time.monotonic(), time.process_time()
        night |= fleet.take(place)
        night |= {"take_s": time.monotonic() - start, "take_cpu_s": time.process_time() - cpu}
        since = (FIRST_DAY + datetime.timedelta(days=max(0, day - last))).isoformat()
        recent = f"day >= {since} and day <= {date}"
        if day == learned:
            fleet.first = f"day <= {date}"
            decisions = fleet.train(fleet.first)
            night["promoted"] = [MODEL] if fleet.promote(fleet.first) else []
            own = [group for group, decision in decisions.items() if decision == "own"]
            night["promoted"] += [group for group in own if fleet.promote(fleet.first, group)]
        elif day > learned:
            night["drifted"] = fleet.drifted(recent)
            if night["drifted"]:
                decisions = fleet.train(recent)
                night["decisions"] = {group: decisions[group] for group in night["drifted"]}
                night["promoted"] = []
                for group in night["drifted"]:
                    if decisions[group] == "own" and fleet.promote(recent, group):
                        night["promoted"].append(group)
                        fleet.learned[group] = recent
        night["refused"], fleet.refused = fleet.refused, []
        night["night_s"] = time.monotonic() - start
        night["bytes"] = sum(p.stat().st_size for p in fleet.store.rglob("*") if p.is_file())
        night["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        history.append(night)
        shown = {k: round(v, 2) if isinstance(v, float) else v for k, v in night.items()}
        print(json.dumps(shown), file=sys.stderr)
    return history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--change", type=int, default=17)
    parser.add_argument("--logs", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="as always")
    parser.add_argument("--growth", action="store_true", help="without drift and models")
    parser.add_argument("--quick", action="store_true", help="eight days of three groups")
    args = parser.parse_args()
    if args.quick:
        args.days, args.groups, args.change = 8, 3, 7
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        sizes = (args.days, args.groups, args.change, args.logs)
        if args.growth:
            history = nights(Path(folder), *sizes)
        else:
            history = month(Path(folder), *sizes, before=_forget_all)
    promoted = [name for night in history for name in night.get("promoted", [])]
    changed = f"g{args.groups - 1:02d}"
    report = {
        "arguments": vars(args),
        "nights": history,
        "changed": changed,
        "promoted": promoted,
        "growth": growth(history),
        "load": os.getloadavg(),
    }
    print(json.dumps(report, indent=1))
    grown = report["growth"]["median_ratio"] > MOST_GROWTH
    if grown or (not args.growth and set(promoted) - {MODEL} != {changed}):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
