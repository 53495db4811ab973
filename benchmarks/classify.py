"""What a verdict costs: features and model as exported C, by length of the window.

Everything is compiled as for a kernel (no SIMD, no floats), fed with made-up connections whose
min RTTs give windows of so many points, and timed in interleaved rounds of which the shortest
counts, since the machines that this runs on are shared. The paper's kernel module took 2.23 ms
for the features of a window and 4.47 ms for a classification (smartsbd.txt section 5.4).

    python benchmarks/classify.py --json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from export.feature_code.feed import Feed, build_feed
from export.feature_code.verdicts import integer_verdicts
from export.params import Options
from export.source import Source, source_of
from export.targets import emit
from export.toolchain.harness import build
from export.vectors import timing_rows
from features.fixed_sbd import evaluate_pairs
from features.fixed_series import Calls
from features.params import SbdParams
from pipelines.sources import open_model

MODELS = ("smartsbd-dt", "smartsbd-rf", "smartsbd-plus-kernel")
TWO_ALONE = frozenset({"smartsbd-plus-kernel"})
"""Models whose features are exported for two subflows alone."""
BASES_US = {
    50: (20_000, 20_000),
    100: (20_000, 40_000),
    300: (20_000, 120_000),
    1024: (20_000, 440_000),
}
"""Points of a window -> min RTTs: 50 larger min RTTs long, one point per smaller one."""
WINDOWS = 8
"""As many as the features of ``smartsbd-plus-kernel`` look back on; the dearest one counts."""
LIMITS_US = {
    "sbd_classify at length 100": 100.0,
    "sbd_classify of smartsbd-plus-kernel at length 100": 50.0,
    "tree alone": 0.04,
}
TIMEOUT_S = 120.0


def connection(points: int, seed: int = 1, subflows: int = 2) -> Calls:
    """ACKs every other millisecond on each of two subflows, losses now and then."""
    rng = np.random.default_rng(seed)
    base_us = np.resize(BASES_US[points], subflows)
    n = int((WINDOWS + 1.5) * 50 * base_us.max() / 1000)
    subflow = np.arange(n) % subflows
    time_us = np.cumsum(rng.integers(500, 1500, n)) + 10_000_000
    queue_us = (np.sin(time_us / 900_000 + 0.4 * subflow) + 1) * 30_000
    rtt_us = base_us[subflow] + queue_us.astype(np.int64) + rng.integers(0, 3000, n)
    rtt_us[:subflows] = base_us
    ca_state = np.full(n, -1)
    lost = rng.random(n) < 0.01
    ca_state[lost] = rng.choice([0, 1, 3, 4], lost.sum())
    ca_state[subflows : 2 * subflows] = 3
    if subflows > 2:  # all are members of the first window
        time_us[subflows : 2 * subflows] = time_us[subflows]
    return Calls(
        subflow, time_us.astype(np.uint64), rtt_us, ca_state,
        np.zeros(n, np.bool_), np.zeros(n, np.uint64),
    )  # fmt: skip


def built(name: str, held: Path, subflows: int) -> tuple[Source, Feed]:
    """A model exported for so many subflows, compiled as for a kernel."""
    source = source_of(open_model(name))
    for file, content in emit("c", source, Options(subflows=subflows)).items():
        (held / file).write_bytes(content)
    (held / "feed").mkdir()
    made_of = (held, source.identifier, held / "feed", TIMEOUT_S)
    return source, build_feed(*made_of, features=len(source.features), subflows=subflows)


def measure(name: str, held: Path, repeats: int) -> dict:
    source, feed = built(name, held, 2)
    (held / "model").mkdir()
    program = build(held / f"{source.identifier}.h", source.identifier, held / "model", TIMEOUT_S)
    rows = timing_rows(source.form, 1)
    calls = {points: connection(points) for points in BASES_US}
    result = {
        "code_bytes": feed.object_bytes,
        "model_bytes": program.object_bytes,
        "stack_bytes": feed.stack_bytes,
        "state_bytes": feed.state_bytes,
        "model_ns": 1e300,
        "lengths": {p: checked(source, feed, made) for p, made in calls.items()},
    }
    for _ in range(repeats):
        result["model_ns"] = min(result["model_ns"], program.ns_per_decision(rows, TIMEOUT_S))
        for points, made in calls.items():
            found = feed.nanoseconds((made, -1), 4, TIMEOUT_S)
            cell = result["lengths"][points]
            timed = {"sample_ns": found.call, "features_ns": found.features}
            for key, ns in (timed | {"classify_ns": found.classify}).items():
                cell[key] = min(cell.get(key, ns), ns)
    return result


def measure_three(name: str, held: Path, repeats: int) -> dict:
    """The same of three subflows: per call, per pair, and per partition of the connection."""
    source, feed = built(name, held, 3)
    result = {"state_bytes": feed.state_bytes, "code_bytes": feed.object_bytes, "lengths": {}}
    for points in BASES_US:
        made = connection(points, subflows=3)
        runs = [feed.nanoseconds((made, -1), 4, TIMEOUT_S) for _ in range(repeats)]
        result["lengths"][points] = {
            "wrong": checked(source, feed, made)["wrong"],
            "sample_ns": min(run.call for run in runs),
            "pair_ns": min(run.classify for run in runs),
            "partition_ns": min(run.partition for run in runs),
        }
    return result


def checked(source: Source, feed: Feed, made: Calls) -> dict:
    """How many windows are timed, and how many of them are wrong."""
    settings = SbdParams.parse(source.feature_settings, source.name)
    meant = evaluate_pairs(made, -1, feed.subflows, settings, source.features)
    (answer,) = feed.run([(made, -1)], TIMEOUT_S)
    found = source.form.evaluate(meant.x)
    settled = integer_verdicts(source.verdicts, source.form)
    verdicts = settled.run(found.scores.tolist()) if settled else None
    wrong = answer.unlike(meant, found.classes, verdicts)
    return {"windows": len(meant.window), "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=10, help="interleaved rounds")
    args = parser.parse_args()
    report = {"load_before": os.getloadavg()[0], "limits_us": LIMITS_US, "models": {}}
    for name in MODELS:
        with tempfile.TemporaryDirectory() as held:
            report["models"][name] = measure(name, Path(held), args.repeats)
        if name in TWO_ALONE:
            continue
        with tempfile.TemporaryDirectory() as held:
            three = measure_three(name, Path(held), args.repeats)
            report["models"][name]["three_subflows"] = three
    report["load_after"] = os.getloadavg()[0]
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    for name, r in report["models"].items():
        sizes = f"{r['code_bytes']} bytes with its features, {r['model_bytes']} alone"
        print(f"\n{name}: model alone {r['model_ns']:.1f} ns; {sizes}")
        print(f"  {r['stack_bytes']} bytes of stack, {r['state_bytes']} per connection")
        print(f"  {'points':>8}{'features us':>14}{'classify us':>14}{'sample ns':>12}{'wrong':>7}")
        for points, cell in r["lengths"].items():
            times = f"{cell['features_ns'] / 1e3:>14.2f}{cell['classify_ns'] / 1e3:>14.2f}"
            print(f"  {points:>8}{times}{cell['sample_ns']:>12.1f}{cell['wrong']:>7}")
        three = r.get("three_subflows")
        if three is None:
            continue
        print(f"  three subflows: {three['state_bytes']} per connection")
        print(f"  {'points':>8}{'pair us':>14}{'partition us':>14}{'sample ns':>12}{'wrong':>7}")
        for points, cell in three["lengths"].items():
            times = f"{cell['pair_ns'] / 1e3:>14.2f}{cell['partition_ns'] / 1e3:>14.2f}"
            print(f"  {points:>8}{times}{cell['sample_ns']:>12.1f}{cell['wrong']:>7}")
    print(f"\nload {report['load_before']:.1f} before, {report['load_after']:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
