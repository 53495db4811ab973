"""What the RBF machine costs in integers, and what it gives, beside the tree and the forest.

The paper's three classifiers with the zoo's settings are fitted on 80 % of the connections and
answer on the rest, as floats and as the exported integers; the exported C is compiled as for a
kernel and timed on all windows, all models in interleaved rounds, the shortest one
counting. ``svm, N vectors of 16 bits`` is the machine after the passes ``vectors`` and ``bits``.

    python benchmarks/svm_cost.py --features data/processed/sbd.parquet --json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from export.fixed import to_integers
from export.ir import Form
from export.lower import lower
from export.params import Options
from export.passes import bits, vectors
from export.source import Source
from export.targets import emit
from export.toolchain.harness import Program, build
from features.sbd import features_of
from models.sbd.train.classifiers import make, probability
from models.sbd.windows import read, windows

NAMES = (
    "RTT_SD_Ratio", "Min_RTT_Ratio", "RTT_DTWD", "CState_SD_Ratio",
    "RTT_CState_DTWD", "RTT_CState_ED", "RTT_ED", "CState_ED",
)  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "tree": ("decision-tree", {"depth": 10, "leaf": 5}),
    "forest": ("random-forest", {"depth": 10, "trees": 50}),
    "svm": ("svm-rbf", {"c": 1000.0, "gamma": 0.25}),
    "svm, the paper's C and gamma": ("svm-rbf", {"c": 100.0, "gamma": 0.1}),
}
KEPT = (600, 400, 200)
FITTED = 4000
"""Windows that the passes fit weights on."""
UNSEEN = "table6"


def compiled(form: Form, layout: str, work: Path) -> Program:
    work.mkdir()
    source = Source(
        "ours", "1", "benchmark", form.kind, form.features, form.labels, 0.5, form, "", b"",
        np.zeros((0, len(form.features))), np.zeros(0),
    )  # fmt: skip
    (work / "ours.h").write_bytes(emit("c", source, Options(layout=layout))["ours.h"])
    return build(work / "ours.h", "ours", work, 600)


def split(group: np.ndarray, share: float, seed: int) -> np.ndarray:
    """True for rows of connections that are held out."""
    connections = np.unique(group)
    chosen = np.random.default_rng(seed).permutation(connections)[: int(share * len(connections))]
    return np.isin(group, chosen)


def measure(path: Path, seed: int, rounds: int) -> dict[str, Any]:
    table = windows(read(path))
    table = table.take(table.finite(NAMES) & (table.y >= 0))
    known = {feature.name: feature for feature in features_of("smartsbd")}
    specs = tuple(known[name] for name in NAMES)
    x, y = table.matrix(NAMES), table.y
    unseen = table.column("dataset") == UNSEEN
    held = split(table.group, 0.2, seed) & ~unseen
    train = ~held & ~unseen
    k = to_integers(x, specs)
    rows: dict[str, dict[str, Any]] = {}
    forms: dict[str, Form] = {}
    for name, (classifier, settings) in MODELS.items():
        with warnings.catch_warnings(action="ignore"):
            estimator = make(classifier, seed, settings).fit(x[train], y[train])
        floats = (probability(estimator, x) > 0.5).astype(np.int64)
        forms[name] = lower(estimator, specs)
        variants = {name: forms[name]}
        if name == "svm":
            around = np.random.default_rng(seed).permutation(k[train])[:FITTED]
            kept = {"svm, 16 bits": bits.smaller(forms[name], 16, around)}
            for n in KEPT:
                fewer = vectors.smaller(forms[name], n, around)
                kept[f"svm, {n} vectors of 16 bits"] = bits.smaller(fewer, 16, around)
            forms |= kept
            variants |= kept
        for title, form in variants.items():
            integers = form.evaluate(k).classes
            rows[title] = {
                "accuracy_float": float((floats == y)[held].mean()),
                "accuracy_integer": float((integers == y)[held].mean()),
                "accuracy_unseen": float((integers == y)[unseen].mean()) if unseen.any() else None,
                "disagreements": int((floats != integers).sum()),
                "rows": len(y),
                "vectors": len(getattr(form, "vectors", ())),
            }
    with tempfile.TemporaryDirectory() as work:
        programs = {}
        for i, (title, form) in enumerate(forms.items()):
            layout = "array" if title == "forest" else "if-else"
            programs[title] = compiled(form, layout, Path(work) / str(i))
            rows[title]["bytes"] = programs[title].object_bytes
        rng = np.random.default_rng(seed)
        # More rows than a branch predictor keeps.
        timed = np.concatenate([rng.permutation(k) for _ in range(1 + (1 << 15) // len(k))])
        for _ in range(rounds):
            for title, program in programs.items():
                each = program.ns_per_decision(timed, 600)
                rows[title]["ns"] = min(each, rows[title].get("ns", each))
    return {
        "trained": int(train.sum()), "held_out": int(held.sum()), "unseen": int(unseen.sum()),
        "models": {title: rows[title] for title in forms},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=Path, default=Path("data/processed/sbd.parquet"))
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds of each model")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    report = {"load_before": load, **measure(args.features, args.seed, args.rounds)}
    report["load_after"] = os.getloadavg()[0]
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    print(f"load {load:.1f} before, {report['load_after']:.1f} after")
    print(f"{'':30}{'float':>8}{'integer':>9}{'unseen':>8}{'differ':>12}{'ns':>10}{'bytes':>9}")
    for name, r in report["models"].items():
        accuracy = f"{r['accuracy_float']:>8.4f}{r['accuracy_integer']:>9.4f}"
        unseen = "-" if r["accuracy_unseen"] is None else f"{r['accuracy_unseen']:.4f}"
        differ = f"{r['disagreements']}/{r['rows']}"
        print(f"{name:30}{accuracy}{unseen:>8}{differ:>12}{r['ns']:>10.0f}{r['bytes']:>9}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
