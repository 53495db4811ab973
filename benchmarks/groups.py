"""Models for many groups of users: time, and memory that doesn't grow with their number.

Each group's 2,000 windows are connections drawn from the lab's table with replacement, features
multiplied by noise, of every second group from one city alone. (Copies of a connection fall into
different folds, so accuracies and decisions here mean nothing.) ``cczoo train sbd groups`` is run
on them as a user would, and the peak resident memory of its process and of each Ray worker
is read from /proc. ``--cluster`` does the same on two Ray nodes of this machine (`ray start`),
kills a worker's process and then the second node with all that runs on it, and compares with an
undisturbed run.

    python benchmarks/groups.py --groups 100 1000 --json
    python benchmarks/groups.py --groups 40 --windows 300 --cluster
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from nodes import MARK, cluster, end, processes

from features.sbd import features_of
from models.sbd.results.groups import GROUPS

ROOT = Path(__file__).resolve().parents[1]
CITIES = ("shanghai", "guangzhou", "silicon-valley", "frankfurt")
FLAT = 1.3
"""Memory with the most groups is at most so many times that with the fewest."""


def write_table(source: Path, to: Path, groups: int, windows: int, seed: int = 0) -> int:
    """A features table of groups ``user``; returns its rows. Written group by group."""
    names = [feature.name for feature in features_of("smartsbd")]
    frame = pl.read_parquet(source).filter(pl.col("dataset") != "table6")
    frame = frame.select("connection", "window", "label", "dataset", *names).sort("connection")
    count = (
        frame.group_by("connection", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
    )
    first, features = np.cumsum(count) - count, frame.select(names).to_numpy()
    city = frame["dataset"].to_numpy()[first]
    pools = [np.arange(count.size), *(np.flatnonzero(city == name) for name in CITIES)]
    rng, rows, writer = np.random.default_rng(seed), 0, None
    for number in range(groups):
        pool = pools[1 + number // 2 % len(CITIES)] if number % 2 else pools[0]
        # More than enough, since every connection has a window at least.
        drawn = pool[rng.integers(pool.size, size=windows)]
        drawn = drawn[: 1 + int(np.searchsorted(np.cumsum(count[drawn]), windows))]
        at = np.concatenate([np.arange(first[i], first[i] + count[i]) for i in drawn])
        noise = np.exp(rng.normal(0, 0.05, (at.size, len(names))))
        values = features[at] * noise
        order = np.repeat(np.arange(drawn.size), count[drawn])
        key = {
            "connection": [f"u{number:05d}-{i:05d}" for i in order],
            "window": frame["window"].to_numpy()[at],
            "label": frame["label"].to_numpy()[at],
            "user": [f"u{number:05d}"] * at.size,
        }
        table = pl.DataFrame(key).hstack(pl.DataFrame(values, schema=names)).to_arrow()
        writer = writer or pq.ParquetWriter(to, table.schema)
        writer.write_table(table)
        rows += len(table)
    assert writer is not None
    writer.close()
    return rows


class Watch:
    """Peak memory of a run's driver and of its workers, seen so far."""

    def __init__(self, mark: str, driver: int) -> None:
        self.mark, self.driver_pid = mark, driver
        self.driver = self.worker = 0

    def look(self) -> list[int]:
        """Read /proc once; returns pids of workers at work."""
        busy = []
        for pid, title, peak in processes(self.mark):
            if pid == self.driver_pid:
                self.driver = max(self.driver, peak)
            elif title.startswith("ray::train_group"):
                self.worker = max(self.worker, peak)
                busy.append(pid)
        return busy


def train(
    table: Path,
    out: Path,
    params: Path,
    environment: dict[str, str] | None = None,
    disturb: Sequence[Any] = (),
) -> dict[str, Any]:
    """Run the command and watch it; ``disturb`` holds (share done, what to do with the watch)."""
    environment = {MARK: uuid.uuid4().hex, **(environment or {})}
    command = [sys.executable, "-m", "pipelines.cli", "train", "sbd", "groups", "--by", "user"]
    command += ["--features", str(table), "--out", str(out), "--no-register", "--json"]
    command += ["--params", str(params)]
    begun = time.monotonic()
    total = pl.scan_parquet(table).select(pl.col("user").n_unique()).collect().item()
    todo = list(disturb)
    with (out.with_suffix(".json")).open("w") as said:
        run = subprocess.Popen(command, cwd=ROOT, stdout=said, env={**os.environ, **environment})
        watch = Watch(environment[MARK], run.pid)
        while run.poll() is None:
            time.sleep(0.5)
            busy = watch.look()
            done = len(list((out / "results").glob("*user=*.json")))
            if todo and busy and done >= todo[0][0] * total:
                todo.pop(0)[1](busy)
    seconds = time.monotonic() - begun
    result = GROUPS.read(out) if run.returncode == 0 else None
    return {
        "status": run.returncode,
        "groups": total,
        "rows": None if result is None else result.rows,
        "counts": None if result is None else result.counts.model_dump(),
        "seconds": round(seconds, 1),
        "driver_mb": watch.driver // 1024,
        "worker_mb": watch.worker // 1024,
        "disturbed": len(disturb) - len(todo),
    }


def register(out: Path, folder: Path) -> dict[str, Any]:
    """Register what was trained in an empty store; seconds and versions."""
    from models.sbd.params import Params
    from models.sbd.train.job import Job
    from pipelines import tracking
    from pipelines.sbd.register import from_groups

    tracking.ROOT = folder
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    tracking.client().search_registered_models()
    result = GROUPS.read(out)
    begun, cpu = time.monotonic(), time.process_time()
    made = from_groups(Job(out, out, Params(), zoo=out / "zoo"), result, None, offline=False)
    return {
        "versions": len(made["versions"]),
        "pointed": result.counts.pooled,
        "seconds": round(time.monotonic() - begun, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def killed(table: Path, folder: Path, params: Path) -> dict[str, Any]:
    """An undisturbed run beside one on two nodes that loses a worker and then a node."""
    alone = train(table, folder / "alone", params)
    with cluster(folder / "ray") as (environment, second):

        def worker(busy: Sequence[int]) -> None:
            os.kill(busy[0], signal.SIGKILL)

        def node(busy: Sequence[int]) -> None:
            end(second)

        todo = [(0.3, worker), (0.5, node)]
        disturbed = train(table, folder / "cluster", params, environment, todo)
    rows = [
        GROUPS.read(folder / name).groups if (folder / name / GROUPS.name).is_file() else None
        for name in ("alone", "cluster")
    ]
    return {
        "alone": alone,
        "cluster": disturbed,
        "same": rows[0] is not None and rows[0] == rows[1],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=Path, default=ROOT / "data/processed/sbd.parquet")
    parser.add_argument("--groups", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--windows", type=int, default=2000, help="of each group")
    parser.add_argument("--params", type=Path, default=ROOT / "params.yaml", help="settings")
    parser.add_argument("--cluster", action="store_true", help="two nodes, one of them killed")
    parser.add_argument("--folder", type=Path, help="where tables and models are left")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    report: dict[str, Any] = {"windows": args.windows, "load_before": os.getloadavg()[0]}
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        runs = []
        for groups in args.groups:
            table = folder / f"{groups}.parquet"
            write_table(args.features, table, groups, args.windows)
            if args.cluster:
                runs.append(killed(table, folder, args.params))
            else:
                out = folder / str(groups)
                runs.append(train(table, out, args.params))
                if runs[-1]["status"] == 0:
                    runs[-1]["registered"] = register(out, folder / f"store-{groups}")
    report |= {"runs": runs, "load_after": os.getloadavg()[0], "cpus": os.cpu_count()}
    if args.cluster:
        met = all(run["same"] and run["cluster"]["disturbed"] == 2 for run in runs)
    else:
        first, last = runs[0], runs[-1]
        met = all(run["status"] == 0 for run in runs)
        met &= all(last[key] <= FLAT * first[key] for key in ("driver_mb", "worker_mb"))
    print(json.dumps({**report, "met": met}, indent=2 if not args.json else None))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
