"""What windows at common times cost the pairs of three subflows, and what each model says of them.

A window of the connection is longer, and its grid finer, than the pair's own would be; models were
trained on pairs by themselves. So each pair is classified twice: in the connection's windows, and
in its own as if the third subflow weren't there.

    cczoo ingest data/raw/three-subflows --out build/three
    python benchmarks/partition.py --events build/three --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.labels import pair_label
from data.store import iter_connections
from features.pairs import pair_windows
from features.params import SbdParams
from features.sbd import compute, features_of
from features.windows import Window, windows
from models import store
from models.stats.intervals import by_connection

MODELS = ("smartsbd-dt", "smartsbd-rf", "smartsbd-plus")
Judged = tuple[int, str, Window]


def common(events: Path, params: SbdParams) -> Iterator[Judged]:
    for number, (row, series) in enumerate(iter_connections(events)):
        for pair, window in pair_windows(row, series, params)[0]:
            if label := pair_label(row, pair):
                yield number, label, window


def own(events: Path, params: SbdParams) -> Iterator[Judged]:
    for number, (row, series) in enumerate(iter_connections(events)):
        for a, b in combinations(sorted(series), 2):
            if label := pair_label(row, (a, b)):
                for window in windows(row, {a: series[a], b: series[b]}, params)[0]:
                    yield number, label, window


def measure(judged: list[Judged]) -> dict:
    group = np.array([number for number, _, _ in judged])
    truth = np.array([label == "SB" for _, label, _ in judged])
    found = [window for _, _, window in judged]
    result = {
        "windows": len(found),
        "points": float(np.mean([window.rtt_us.shape[1] for window in found])),
        "seconds": float(np.mean([(w.end_us - w.start_us) / 1e6 for w in found])),
        "accuracy": {},
    }
    for name in MODELS:
        model = store.load(name)
        family = compute(model.meta.family, found)
        columns = [f.name for f in features_of(model.meta.family)]
        x = family[:, [columns.index(feature) for feature in model.meta.features]]
        hit = (model.predict_proba(x) > model.meta.threshold) == truth
        result["accuracy"][name] = {**by_connection(hit, group)}
    return result


def _settings() -> dict:
    """What all models' features are computed with."""
    first, *others = (store.load(name).meta.feature_settings for name in MODELS)
    if any(other != first for other in others):
        raise UserError(f"{', '.join(MODELS)}: trained on windows of different settings")
    return first


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=Path, required=True, help="directory made by ingest")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    params = SbdParams.parse(_settings(), "models")
    report = {
        "common": measure(list(common(args.events, params))),
        "own": measure(list(own(args.events, params))),
    }
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    for kind, r in report.items():
        print(f"{kind}: {r['windows']} windows of {r['seconds']:.2f} s, {r['points']:.0f} points")
        for name, a in r["accuracy"].items():
            print(f"  {name:<14} {a['mean']:.3f} [{a['low']:.3f}, {a['high']:.3f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
