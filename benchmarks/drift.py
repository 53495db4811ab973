"""How often `cczoo drift` is right: no drift in halves, drift in what was left out.

Random halves of the sites and of the randomised campaign, by connection, are one condition; each
site and family left out of the rest is another. Beside each left-out one stands the accuracy there
that reports/sbd/lofo.json has for a model trained without it.

    python benchmarks/drift.py --trials 60 --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeClassifier

from features.sbd import features_of
from models.sbd import windows as tables
from models.sbd.drift import compare as drift
from models.sbd.drift import reference
from models.sbd.evaluate.holdout import unseen_rows
from models.sbd.params import Drift, Protocol
from models.sbd.results.verdicts import LOFO
from models.sbd.windows import Windows

MODEL = "smartsbd-dt"
FEATURES = 8
"""The first of a family, as many as the kept models of the paper have."""
SETTINGS = Drift(permutations=1000, trees=10)


class Trials:
    """A table, and answers of trees that hadn't seen the connection."""

    def __init__(self, path: Path, family: str) -> None:
        protocol = Protocol()
        whole = tables.windows(tables.read(path))
        self.names = [feature.name for feature in features_of(family)][:FEATURES]
        known = ~unseen_rows(whole, protocol)
        self.table: Windows = whole.take(known & whole.finite(self.names) & (whole.y >= 0))
        x, y = self.table.matrix(self.names), self.table.y
        self.probability = np.zeros(len(y))
        for train, test in GroupKFold(5).split(x, y, self.table.group):
            tree = DecisionTreeClassifier(max_depth=8, min_samples_leaf=5, random_state=0)
            tree.fit(x[train], y[train])
            self.probability[test] = tree.predict_proba(x[test])[:, 1]

    def compare(self, new: NDArray[np.bool_], seed: int, by: Sequence[str] = ()) -> dict[str, Any]:
        """The rows of ``new`` against all others."""
        old = self.table.take(~new)
        held = reference.answers(old, self.probability[~new], self.names)
        kept = reference.of(old, self.names, held, SETTINGS, seed)
        mine = self.table.take(new)
        return drift.compare(kept, mine, self.probability[new], self.names, by, SETTINGS, seed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=Path, default=Path("data/processed/sbd.parquet"))
    parser.add_argument("--lofo", type=Path, default=Path("reports/sbd/lofo.json"))
    parser.add_argument("--family", default="smartsbd")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    trials = Trials(args.features, args.family)
    group = trials.table.group
    kinds = ("drift", "retrain", "auc", "novel", "drift by family")
    nothing: dict[str, list[float]] = {kind: [] for kind in kinds}
    for seed in range(args.trials):
        rng = np.random.default_rng(1000 + seed)
        half = rng.permutation(np.unique(group))[: np.unique(group).size // 2]
        found = trials.compare(~np.isin(group, half), seed)
        nothing["drift"].append(found["drift"])
        nothing["retrain"].append(found["verdict"] == drift.RETRAIN)
        nothing["auc"].append(found["groups"][0]["auc"]["auc"])
        nothing["novel"].append(found["groups"][0]["novel"])
        if seed % 2 == 0:
            by_family = trials.compare(~np.isin(group, half), seed, ("family",))
            nothing["drift by family"].append(by_family["drift"])
        print(f"halves: {seed + 1} of {args.trials}", file=sys.stderr)
    rows = LOFO.read_at(args.lofo).families if args.lofo.is_file() else ()
    accuracy = {row.value: row.window["mean"] for row in rows if row.model == MODEL}
    family = trials.table.column("family")
    left_out = []
    for name in np.unique(family):
        row = trials.compare(family == name, 0)["groups"][0]
        left_out.append(
            {
                "left_out": str(name),
                "drift": row["drift"],
                "auc": row["auc"]["auc"],
                "novel": row["novel"],
                "accuracy": accuracy.get(str(name)),
            }
        )
    result = {
        "trials": args.trials,
        "halves": {key: float(np.mean(values)) for key, values in nothing.items()},
        "auc_deviation": float(np.std(nothing["auc"])),
        "left_out": left_out,
    }
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print(result["halves"])
        for row in left_out:
            print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
