"""Every benchmark, one after the other; `make bench` runs this.

Each is a program that prints JSON alone on stdout and ends with 1 where what it aims at isn't met.
What it printed is kept in benchmarks/results/ (with --quick in .bench/quick/, so that short runs
never replace long ones). One that fails doesn't stop the rest; the status at the end tells.

    python benchmarks/run.py [--quick] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 3600


@dataclass(frozen=True)
class Benchmark:
    """Arguments of one program.

    Attributes
    ----------
    always, quick : tuple of str
        Given always, and with ``--quick`` besides.
    needs : tuple of str, optional
        A file that must be there, and the command that makes it.
    program : str, optional
        Name of the program where it is another's.
    """

    always: tuple[str, ...] = ("--json",)
    quick: tuple[str, ...] = ()
    needs: tuple[str, str] | None = None
    program: str = ""


BENCHMARKS: dict[str, Benchmark] = {
    "dtw": Benchmark(quick=("--quick", "--repeats", "2")),
    "ingest": Benchmark(quick=("--repeats", "2")),
    "month": Benchmark(quick=("--quick",)),
    "growth": Benchmark(
        always=("--json", "--growth", "--logs", "1"), quick=("--days", "12"), program="month"
    ),
    "fleet": Benchmark(quick=("--connections", "60")),
    "fleet_kills": Benchmark(
        always=(
            "--json",
            "--connections",
            "40",
            "--without",
            "2 processes",
            "2 nodes",
            "--more",
            "0",
        ),
        program="fleet",
    ),
    "formats": Benchmark(quick=("--commits", "4")),
    "exporters": Benchmark(quick=("--quick",)),
    "classify": Benchmark(quick=("--repeats", "2")),
    "svm_cost": Benchmark(
        quick=("--rounds", "1"), needs=("data/processed/sbd.parquet", "make repro")
    ),
    "groups": Benchmark(
        quick=("--groups", "10", "40", "--windows", "300"),
        needs=("data/processed/sbd.parquet", "make repro"),
    ),
    "cluster": Benchmark(
        always=("--json", "--cluster", "--groups", "1000"),
        quick=("--groups", "12", "--windows", "300"),
        needs=("data/processed/sbd.parquet", "make repro"),
        program="groups",
    ),
    "drift": Benchmark(quick=("--trials", "2"), needs=("data/processed/sbd.parquet", "make repro")),
    "prove": Benchmark(quick=("--model", "smartsbd-dt")),
    "neural": Benchmark(
        quick=("--quick",), needs=("data/processed/series.parquet", "cczoo features series")
    ),
    "netsim": Benchmark(always=()),
    "envs": Benchmark(quick=("--steps", "2000", "--pairs", "1", "--threads2", "0")),
    "train": Benchmark(quick=("--repeats", "2")),
    "kills": Benchmark(quick=("--kills", "3")),
    "qos": Benchmark(quick=("--pgmpy", "5")),
    "policies": Benchmark(quick=("--decisions", "500", "--timed", "200")),
}
"""Name of a result, and of ``benchmarks/<name>.py`` unless told -> how it is run."""


def run(name: str, quick: bool, results: Path) -> str:
    """Run one and keep what it printed; what went wrong, or nothing."""
    benchmark = BENCHMARKS[name]
    if benchmark.needs and not (ROOT / benchmark.needs[0]).is_file():
        print(f"skipped: {benchmark.needs[0]} is missing: {benchmark.needs[1]} makes it")
        return ""
    command = [sys.executable, f"benchmarks/{benchmark.program or name}.py", *benchmark.always]
    command += benchmark.quick if quick else ()
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {LIMIT_S} s"
    spent = f"{time.monotonic() - begun:.0f} s"
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return f"status {done.returncode} without a result after {spent}"
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{name}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{path.relative_to(ROOT)} after {spent}")
    for peer in found.get("left_out", []) if isinstance(found, dict) else []:
        print(f"left out: {peer}")
    return f"status {done.returncode}: its aim isn't met" if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="minutes instead of the whole")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: there are {', '.join(BENCHMARKS)}")
    results = ROOT / ".bench" / "quick" if args.quick else ROOT / "benchmarks" / "results"
    failed = {}
    for name in args.names or BENCHMARKS:
        print(f"== {name}", flush=True)
        problem = run(name, args.quick, results)
        if problem:
            print(problem, flush=True)
            failed[name] = problem
    for name, problem in failed.items():
        print(f"FAILED  {name}: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
