"""Speed and memory of a store: one process, two, two Ray nodes, and nodes that are killed.

The lab's logs of one city are written again under other names, tokens and days until there are
enough. `cczoo ingest --into` and `cczoo features sbd|decisions --store` take them as a user would.
Processes are looked at in /proc: peak resident memory of each, CPU seconds of all. On the two nodes
(`ray start`, one CPU each) the same is done twice, the second time with a worker's process killed
in each step once a fifth of the files is written, and with the second node killed too, with all
that runs on it, in the second step; in the end all stores have to hold the same rows. Last, one
process does all of it for `--more` times as many connections, to see whether its memory grows.

    python benchmarks/fleet.py [--connections 600] [--more 3] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from nodes import MARK, cluster, end, processes

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from data.stream import decompressed  # noqa: E402

RAW = ROOT / "data" / "raw" / "smartsbd-paper" / "frankfurt"
STEPS = {"ingest": "logs", "features": "sbd", "decisions": "decisions-tcco"}
"""Step -> table that it fills."""
KEYS = {
    "logs": ["kind", "source", "connection", "line"],
    "sbd": ["source", "connection", "window", "subflow_a", "subflow_b"],
    "decisions-tcco": ["run", "step", "subflow"],
}
"""Table -> what tells its rows apart."""
KILLED = (1, 2, 1)
"""What dies in each step of the last run."""
DAYS = 4
MOST_MB = 500
"""Peak resident memory that a process may reach, whatever the number of connections."""
LOOK_S = 0.3
TICK = os.sysconf("SC_CLK_TCK")
RUNS = {"1 process": 1, "2 processes": 2, "2 nodes": None, "killed": None}
"""Name -> processes, or none for the two nodes."""
MORE = "more"
"""Name of the run of many connections."""
Disturb = Sequence[tuple[float, Callable[[Sequence[int]], None]]]
"""(share of the files that are written, what to do with the workers that are busy then)."""


def write_logs(folder: Path, connections: int) -> int:
    """Logs of so many connections in folders of days; returns their bytes."""
    sources = sorted(RAW.glob("*.klog.zst"))
    size = 0
    texts: dict[Path, bytes] = {}
    for number in range(connections):
        source = sources[number % len(sources)]
        if source not in texts:
            texts[source] = b"".join(decompressed(source))
        head, _, rest = texts[source].partition(b"\n#columns")
        before, _, token = head.partition(b'"token":')
        token = token.partition(b",")[2]
        own = before + b'"token": "%08x",' % number + token + b"\n#columns" + rest
        day = folder / f"2026-11-{1 + number * DAYS // connections:02d}"
        day.mkdir(parents=True, exist_ok=True)
        (day / f"{number:06d}.klog").write_bytes(own)
        size += len(own)
    return size


class Watch:
    """What a run's processes take: the command's own, and those that work for it."""

    def __init__(self, mark: str, command: int) -> None:
        self.mark, self.command = mark, command
        self.command_mb = self.worker_mb = 0
        self.spent: dict[int, float] = {}

    def look(self) -> list[int]:
        """Read /proc once; returns pids of workers of a cluster that do something."""
        busy = []
        for pid, title, peak in processes(self.mark):
            works = title.startswith("ray::") and "Map" in title
            if pid == self.command:
                self.command_mb = max(self.command_mb, peak // 1024)
            elif works or "multiprocessing.spawn" in title:
                self.worker_mb = max(self.worker_mb, peak // 1024)
                busy.append(pid)
            else:
                continue
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                self.spent[pid] = (int(fields[11]) + int(fields[12])) / TICK
        return busy


def cczoo(
    words: Sequence[Any],
    written: Callable[[], int],
    expected: int,
    environment: dict[str, str],
    disturb: Disturb = (),
) -> dict[str, Any]:
    """Run a command and watch it."""
    command = [sys.executable, "-m", "pipelines.cli", *map(str, words), "--json"]
    environment = {MARK: uuid.uuid4().hex, **environment}
    todo = list(disturb)
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        run = subprocess.Popen(command, cwd=ROOT, stdout=said, env={**os.environ, **environment})
        watch = Watch(environment[MARK], run.pid)
        while run.poll() is None:
            time.sleep(LOOK_S)
            busy = watch.look()
            if todo and busy and written() >= todo[0][0] * expected:
                todo.pop(0)[1](busy)
        seconds = time.monotonic() - begun
        said.seek(0)
        told = json.loads(said.read() or "null")
    return {
        "status": run.returncode,
        "seconds": round(seconds, 1),
        "command_cpu_s": round(watch.spent.get(run.pid, 0), 1),
        "cpu_s": round(sum(watch.spent.values()), 1),
        "command_mb": watch.command_mb,
        "worker_mb": watch.worker_mb,
        "disturbed": len(disturb) - len(todo),
        "connections": (told or {}).get("connections"),
    }


def night(
    logs: Path,
    store: Path,
    jobs: int | None,
    environment: dict[str, str],
    expected: dict[str, int],
    disturb: Sequence[Disturb] = ((), (), ()),
) -> dict[str, Any]:
    """Ingest, features and decisions into a new store."""

    def files(table: str) -> int:
        made = (store / table).glob("*=*/**/*.parquet")
        return sum(1 for _ in made)

    options = [] if jobs is None else ["--jobs", jobs]
    words = (
        ["ingest", logs, "--into", store, "--root", logs, *options],
        ["features", "sbd", "--store", store, *options],
        ["features", "decisions", "tcco", "--behaviour", "lia", "--store", store, *options],
    )
    found = {}
    for (step, table), command, todo in zip(STEPS.items(), words, disturb, strict=True):
        most = expected.get(table, 0)
        found[step] = cczoo(command, partial(files, table), most, environment, todo)
        expected.setdefault(table, files(table))
    return found


def contents(store: Path, table: str) -> pl.DataFrame:
    """Rows of a table, whatever files they are in, without what differs from store to store."""
    from deltalake import DeltaTable

    rows = pl.from_arrow(DeltaTable(store / table).to_pyarrow_table())
    assert isinstance(rows, pl.DataFrame)
    return rows.sort(KEYS[table])


def same(one: Path, other: Path) -> bool:
    """Whether two stores hold the same rows."""
    return all(contents(one, table).equals(contents(other, table)) for table in KEYS)


def kills(second: subprocess.Popen[bytes]) -> Iterator[Disturb]:
    """In each step a worker's process, for features the node too."""

    def worker(busy: Sequence[int]) -> None:
        os.kill(busy[0], signal.SIGKILL)

    def node(busy: Sequence[int]) -> None:
        end(second)

    yield [(0.2, worker)]
    yield [(0.2, worker), (0.4, node)]
    yield [(0.2, worker)]


def every(
    folder: Path, connections: int, only: str | None, without: Sequence[str]
) -> dict[str, Any]:
    """All runs; one whose result is in the folder already isn't done again."""
    logs, known = folder / "logs", folder / "expected.json"
    if not logs.exists():
        size = write_logs(logs, connections)
        (folder / "size").write_text(str(size))
    expected: dict[str, int] = json.loads(known.read_text()) if known.exists() else {}
    found: dict[str, Any] = {}
    for name, jobs in RUNS.items():
        told, store = folder / f"{name}.json", folder / name
        if not told.exists() and only in (None, name) and name not in without:
            before = os.getloadavg()[0]
            shutil.rmtree(store, ignore_errors=True)
            with contextlib.ExitStack() as stack:
                environment, todo = {}, [(), (), ()]
                if jobs is None:
                    shutil.rmtree(folder / "ray", ignore_errors=True)
                    environment, second = stack.enter_context(cluster(folder / "ray"))
                    todo = list(kills(second)) if name == "killed" else todo
                run = night(logs, store, jobs, environment, expected, todo)
            run["load"] = [before, os.getloadavg()[0]]
            known.write_text(json.dumps(expected))
            told.write_text(json.dumps(run))
        if told.exists():
            found[name] = json.loads(told.read_text())
    return found


def many(folder: Path, connections: int) -> dict[str, Any]:
    """One process for many connections, whose logs and store are then deleted."""
    write_logs(folder / "logs", connections)
    found = night(folder / "logs", folder / "store", 1, {}, {})
    shutil.rmtree(folder)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=600)
    parser.add_argument("--folder", type=Path, help="where everything is left, to go on from")
    parser.add_argument("--more", type=int, default=3, help="times as many; 0: not at all")
    parser.add_argument("--only", choices=RUNS, help="one run, with --folder")
    parser.add_argument("--without", nargs="+", choices=RUNS, default=[], help="runs to leave out")
    parser.add_argument("--json", action="store_true", help="as always")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        runs = every(folder, args.connections, args.only, args.without)
        if args.only:
            return 0
        megabytes = round(int((folder / "size").read_text()) / 1e6, 1)
        first, *others = runs
        alike = {name: same(folder / first, folder / name) for name in others}
        if args.more:
            more = args.more * args.connections
            runs[MORE] = many(folder / MORE, more) | {"connections": more}
    parts = [run[step] for run in runs.values() for step in STEPS]
    peaks = [part[key] for part in parts for key in ("command_mb", "worker_mb")]
    met = all(alike.values()) and max(peaks) <= MOST_MB
    met &= all(part["status"] == 0 for part in parts)
    # What is so little that the command does it itself has no worker that could be killed.
    killed = runs.get("killed", {})
    met &= all(
        part["disturbed"] == deaths
        for part, deaths in zip((killed[step] for step in STEPS if killed), KILLED, strict=False)
        if part["worker_mb"]
    )
    report = {
        "connections": args.connections,
        "megabytes": megabytes,
        "runs": runs,
        "same": alike,
        "cpus": os.cpu_count(),
        "most_mb": MOST_MB,
        "left_out": [name for name in RUNS if name not in runs],
        "met": met,
    }
    print(json.dumps(report, indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
