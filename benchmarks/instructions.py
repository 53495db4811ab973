"""Instructions and cache misses per packet event by number of flows, counted by valgrind.

Unlike times they hang neither on the machine nor on what else it does: cachegrind runs the compiled
kernel on a model of a core with 48 KB of first-level and 2 MB of second-level cache. What starting
takes is counted apart and subtracted. Some 20 minutes; needs valgrind.

    python -m benchmarks.instructions [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.netsim import with_flows

ROOT = Path(__file__).resolve().parents[1]
CACHES = ("--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64")
COUNTED = {
    "instructions": r"I\s+refs:\s+([\d,]+)",
    "first_level_misses": r"D1\s+misses:\s+([\d,]+)",
    "second_level_misses": r"LLd misses:\s+([\d,]+)",
}
FLOW_S = 1600.0
"""Simulated seconds times flows: 350 000 packet events."""
PLAIN_CPU = {
    "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
    " AVX512_SPR", "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip
"""Settings under which nothing uses instructions that valgrind doesn't know."""


def simulate(flows: int, flow_s: float) -> None:
    """What is counted: print how many packet events there were."""
    network = with_flows(flows)
    before = int(network.state.g["packet_events"])
    network.advance(network.now_s + flow_s / flows)
    print(int(network.state.g["packet_events"]) - before)


def counted(flows: int, flow_s: float) -> dict[str, int]:
    """Counts of one process from its start to its end."""
    child = [sys.executable, "-m", "benchmarks.instructions", "--simulate", str(flows), str(flow_s)]
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES]
    done = subprocess.run(
        [*tool, "--cachegrind-out-file=/dev/null", *child],
        cwd=ROOT, env=os.environ | PLAIN_CPU, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {"packet_events": int(done.stdout)}
    for name, pattern in COUNTED.items():
        match = re.search(pattern, done.stderr)
        if match is None:
            raise SystemExit(f"valgrind printed no {name}:\n{done.stderr}")
        found[name] = int(match[1].replace(",", ""))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    parser.add_argument("--simulate", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.simulate:
        simulate(int(args.simulate[0]), float(args.simulate[1]))
        return 0
    if shutil.which("valgrind") is None:
        print("valgrind is missing: apt-get install valgrind", file=sys.stderr)
        return 2
    result: dict[str, dict[str, float]] = {}
    for flows in (2, 200):
        # Compiled first, outside valgrind.
        child = [sys.executable, "-m", "benchmarks.instructions", "--simulate", str(flows), "1"]
        subprocess.run(child, cwd=ROOT, env=os.environ | PLAIN_CPU, check=True, capture_output=True)
        print(f"{flows} flows: counting the start, then the start and more", file=sys.stderr)
        start, whole = counted(flows, 0.0), counted(flows, FLOW_S)
        events = whole["packet_events"]
        result[str(flows)] = {name: (whole[name] - start[name]) / events for name in COUNTED}
    result["200 over 2"] = {
        "instructions": result["200"]["instructions"] / result["2"]["instructions"]
    }
    if args.json:
        print(json.dumps(result, indent=1))
        return 0
    for flows_, row in result.items():
        print(flows_, *(f"{name} {value:.2f}" for name, value in row.items()), sep="  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
