"""Write docs/fidelity.md: the simulator beside ns-3 on the same dumbbells.

``python -m benchmarks.ns3.compare`` builds the ns-3 program where libns3-dev is there. ns-3's
results are kept in ``results.json`` by command line, with a digest of the program's source: where
ns-3 is absent they stand for it, and what they lack is named and left out. ``--fresh`` measures
again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.ns3.cases import CASES, Case, arguments, spec
from benchmarks.ns3.page import page
from benchmarks.ns3.program import PROGRAM, SOURCE, built
from data.netsim.network import Network

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "fidelity.md"
_SAMPLE_S = 0.1

Run = dict[str, float]


def of_ns3(words: list[str]) -> Run:
    """One run of ns-3's program, with its CPU time (s)."""
    with subprocess.Popen([str(PROGRAM), *words], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        printed = dict(word.split("=") for word in child.stdout.read().split())
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise subprocess.CalledProcessError(child.returncode, child.args)
    return {key: float(value) for key, value in printed.items()} | {"cpu_s": used.ru_utime}


def of_netsim(case: Case, seed: int) -> Run:
    """One run of the simulator, sampled as ns-3's program samples."""
    scenario = spec(case)
    network = Network(scenario, case.ours, seed)
    network.advance(scenario.warmup_s)
    core = network.link("core")
    data = network.state.conn["data_rcv"].copy()
    dropped, arrived = int(core["dropped"]), int(core["arrived"])
    span = scenario.duration_s - scenario.warmup_s
    trips = []
    waits = int(core["wait_sum"])
    for i in range(round(span / _SAMPLE_S)):
        network.advance(scenario.warmup_s + i * _SAMPLE_S)
        trips.append(network.state.sub["srtt"].mean())
    network.advance(scenario.duration_s)
    core = network.link("core")
    share = (network.state.conn["data_rcv"] - data) * 1448 * 8 / span / 1e6
    return {
        "goodput_mbps": float(share.sum()),
        "rtt_ms": float(np.mean(trips)) / 1e6,
        "drop_rate": (int(core["dropped"]) - dropped) / (int(core["arrived"]) - arrived),
        "queue_packets": (int(core["wait_sum"]) - waits) / span / 1e9,
        "jain": float(share.sum() ** 2 / (len(share) * (share**2).sum())),
    }


def measure(seeds: int, jobs: int, fresh: bool) -> dict[str, Run]:
    """What is known of ns-3, by command line, with what is missing measured if it can be."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    runs: dict[str, Run] = {} if fresh or kept.get("program") != digest else kept["runs"]
    wanted = [arguments(case, seed) for seed in range(1, seeds + 1) for case in CASES]
    missing = [words for words in wanted if " ".join(words) not in runs]
    if missing and not built():
        print(f"{len(missing)} of {len(wanted)} runs of ns-3 are left out: {PROGRAM} is missing "
              "(benchmarks/ns3/build.sh makes it of libns3-dev)", file=sys.stderr)  # fmt: skip
        return runs
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for words, run in zip(missing, pool.map(of_ns3, missing), strict=True):
            runs[" ".join(words)] = run
            text = json.dumps({"program": digest, "runs": runs}, indent=1) + "\n"
            RESULTS.write_text(text, encoding="utf-8")
            print(" ".join(words), f"{run['cpu_s']:.1f} s", file=sys.stderr, flush=True)
    return runs


def main() -> int:
    """Run what is missing, simulate, write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ns3.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=6, help="runs of ns-3 (default 6)")
    parser.add_argument("--netsim-seeds", type=int, default=40, help="our runs (default 40)")
    parser.add_argument("--jobs", type=int, default=1, help="runs of ns-3 side by side")
    parser.add_argument("--fresh", action="store_true", help="forget ns-3's kept results")
    args = parser.parse_args()
    runs = measure(args.seeds, args.jobs, args.fresh)
    rows = []
    for case in CASES:
        theirs = [
            runs[key]
            for seed in range(1, args.seeds + 1)
            if (key := " ".join(arguments(case, seed))) in runs
        ]
        if len(theirs) < 2:
            print(f"left out: {case.name}, {case.where}: no runs of ns-3", file=sys.stderr)
            continue
        rows.append((case, theirs, [of_netsim(case, seed) for seed in range(args.netsim_seeds)]))
    PAGE.write_text(page(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
