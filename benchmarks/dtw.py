"""DTW distances per CPU-second: ours beside tslearn, aeon and dtaidistance, one core, one run.

    python benchmarks/dtw.py [--json] [--repeats N] [--quick]

Peers that the project doesn't install go into a throw-away virtual environment (made with uv), each
measured in a process of its own. All measure in turn, shape by shape and repeat by repeat, in
CPU time, so that a busy machine is unfair to all alike; the best repeat counts. Answers are
compared too. Exits 1 when an answer differs or ours isn't 5 times the fastest peer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from uv import uv as find_uv

SHAPES = [(length, dims) for length in (50, 100, 200, 300) for dims in (1, 2, 3)]
AIM = 5.0
CELLS = {"ours": 6e8, "peer": 1.2e7}
"""Cells of the cost matrix per measurement, some tenths of a second on an idle core."""
TOLERANCE = 1e-9

WORKER = r"""
import json, sys, time
import numpy as np
name = sys.argv[1]
if name == "ours":
    sys.path.insert(0, sys.argv[2])
    from features.dtw import dtw_stacked as run
elif name == "tslearn":
    from tslearn.metrics import cdist_dtw
    def run(a, b):
        # A block of all against all, the fastest form tslearn has: 1/size of the pairs are ours.
        return cdist_dtw(a, b, n_jobs=1)
elif name == "aeon":
    from aeon.distances import dtw_pairwise_distance
    def run(a, b):
        a, b = (x.transpose(0, 2, 1).copy() for x in (a, b))
        return np.sqrt(dtw_pairwise_distance(a, b))
elif name == "dtaidistance":
    from dtaidistance import dtw, dtw_ndim
    def run(a, b):
        if a.shape[2] == 1:
            return np.array([dtw.distance_fast(x, y, use_pruning=False)
                             for x, y in zip(a[:, :, 0].copy(), b[:, :, 0].copy())])
        return np.array([dtw_ndim.distance_fast(x, y) for x, y in zip(a, b)])
else:
    raise SystemExit(name)
block = name in ("tslearn", "aeon")
print("ready", flush=True)
for line in sys.stdin:
    length, dims, pairs = json.loads(line)
    size = max(2, round(pairs ** 0.5)) if block else pairs
    rng = np.random.default_rng(length * 10 + dims)
    check = rng.normal(size=(2, 4, length, dims)).cumsum(axis=2)
    answers = run(check[0], check[1])
    answers = np.diagonal(answers) if block else answers
    a, b = np.random.default_rng(1).normal(size=(2, size, length, dims)).cumsum(axis=2)
    start = time.process_time()
    done = np.size(run(a, b))
    spent = time.process_time() - start
    print(json.dumps({"rate": done / spent, "answers": answers.tolist()}), flush=True)
"""

ONE_CORE = dict.fromkeys(
    ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


class Contestant:
    """A process that measures on request."""

    def __init__(self, name: str, python: str, script: Path) -> None:
        root = str(Path(__file__).resolve().parents[1])
        self.name = name
        self.process = subprocess.Popen(
            [python, str(script), name, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_CORE},
        )
        if self._read() != "ready\n":
            raise SystemExit(f"{name} didn't start")

    def measure(self, length: int, dims: int, share: float) -> dict:
        cells = CELLS["ours" if self.name == "ours" else "peer"] * share
        pairs = max(8, int(cells / length**2))
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([length, dims, pairs]) + "\n")
        self.process.stdin.flush()
        return json.loads(self._read())

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with status {self.process.wait()}")
        return line

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def peers_python(folder: Path) -> str:
    """A throw-away environment with the peers: aeon holds numba and numpy back."""
    uv = find_uv()
    if uv is None:
        raise SystemExit("no uv to make the peers' environment with: run make setup, or install uv")
    python = str(folder / "bin" / "python")
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], **quiet)
    packages = ["aeon", "dtaidistance[numpy]", "numba", "tslearn"]
    subprocess.run([uv, "pip", "install", "-q", "--python", python, *packages], **quiet)
    return python


def steal_share() -> float:
    """Share of CPU time that the host took away since boot, as /proc/stat has it."""
    ticks = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7] / sum(ticks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON alone on stdout")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="less work per measurement")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "worker.py"
        script.write_text(WORKER)
        peers = peers_python(Path(folder) / "venv")
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        everyone = [Contestant("ours", sys.executable, script)]
        everyone += [Contestant(n, peers, script) for n in ("tslearn", "aeon", "dtaidistance")]
        try:
            rows = measure(everyone, args.repeats, 0.1 if args.quick else 1.0)
        finally:
            for contestant in everyone:
                contestant.close()
    report = {
        "unit": "pairs per CPU-second, one core",
        "shapes": rows,
        "smallest_ratio": min(row["ratio"] for row in rows),
        "largest_difference": max(row["difference"] for row in rows),
        "steal_since_boot": round(steal_share(), 4),
    }
    show(report, args.json)
    good = report["smallest_ratio"] >= AIM and report["largest_difference"] <= TOLERANCE
    return 0 if good else 1


def measure(everyone: list[Contestant], repeats: int, share: float) -> list[dict]:
    rows = []
    for length, dims in SHAPES:
        best = dict.fromkeys((c.name for c in everyone), 0.0)
        answers = {}
        for repeat in range(repeats + 1):
            for contestant in everyone:
                result = contestant.measure(length, dims, share if repeat else share / 10)
                answers[contestant.name] = result["answers"]
                if repeat:  # the first round compiles
                    best[contestant.name] = max(best[contestant.name], result["rate"])
        difference = max(
            abs(x - y)
            for name in answers
            for x, y in zip(answers["ours"], answers[name], strict=True)
        )
        fastest = max(rate for name, rate in best.items() if name != "ours")
        row = {"length": length, "dims": dims, "rates": best, "difference": difference}
        rows.append({**row, "ratio": best["ours"] / fastest})
        print(f"{length} x {dims}: {rows[-1]['ratio']:.1f}", file=sys.stderr)
    return rows


def show(report: dict, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report, indent=2))
        return
    names = list(report["shapes"][0]["rates"])
    print("length dims " + " ".join(f"{name:>13}" for name in names) + "   ratio to fastest peer")
    for row in report["shapes"]:
        rates = " ".join(f"{row['rates'][name]:13.0f}" for name in names)
        print(f"{row['length']:6d} {row['dims']:4d} {rates}   {row['ratio']:.1f}")
    print(f"largest difference of answers: {report['largest_difference']:.1e}")


if __name__ == "__main__":
    sys.exit(main())
