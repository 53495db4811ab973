"""Compare the 18 features on both sides, and train classifiers on one side to test on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from models.sbd.windows import Windows


def run_of(source: pl.Series) -> pl.Series:
    """Id of a run, from the name of its log."""
    return source.str.split("/").list.last().str.split(".").list.first()


def distributions(kernel: Windows, simulated: Windows) -> list[dict[str, Any]]:
    """Compare the distributions of the 18 features, by class.

    Returns
    -------
    list of dict
        Per feature and class: Kolmogorov-Smirnov distance between kernel and netsim windows, and
        the distance between two halves of the kernel's connections, which is due to chance.
    """
    from scipy.stats import ks_2samp

    from features.sbd import features_of

    rows = []
    names = [feature.name for feature in features_of("smartsbd")]
    half = kernel.group % 2 == 0
    columns, others = kernel.matrix(names), simulated.matrix(names)
    for j, name in enumerate(names):
        row: dict[str, Any] = {"feature": name}
        for label, y in (("SB", 1), ("NSB", 0)):
            mine = kernel.y == y
            between = ks_2samp(columns[mine, j], others[simulated.y == y, j]).statistic
            chance = ks_2samp(columns[mine & half, j], columns[mine & ~half, j]).statistic
            row[label] = float(between)
            row[f"{label}_chance"] = float(chance)
        rows.append(row)
    return rows


def transfer(kernel: Windows, simulated: Windows, seed: int) -> list[dict[str, Any]]:
    """Train on one side and test on the other, on connections that weren't trained on in either.

    Returns
    -------
    list of dict
        Per model: accuracy per window with 95 % bootstrap intervals over connections.
    """
    import numpy as np

    from models.sbd.params import THRESHOLD
    from models.sbd.train.classifiers import make, probability
    from models.store import load

    split = {True: _even(kernel, True), False: _even(kernel, False)}
    rows = []
    for name, kind in (("smartsbd-dt", "decision-tree"), ("smartsbd-rf", "random-forest"),
                       ("smartsbd-plus-lr", "logistic-regression")):  # fmt: skip
        columns = load(name).meta.features
        settings = {"decision-tree": {"depth": 10, "leaf": 5}, "random-forest": {"leaf": 3}}
        row: dict[str, Any] = {"model": name}
        for source, table in (("kernel", kernel), ("netsim", simulated)):
            hits, groups = [], []
            for test_even in (True, False):
                train = table.take(_even(table, not test_even))
                test = kernel.take(split[test_even])
                model = make(kind, seed, settings.get(kind, {}))
                model.fit(train.matrix(columns), train.y)
                answer = probability(model, test.matrix(columns)) > THRESHOLD
                hits.append(answer == (test.y == 1))
                groups.append(test.group)
            row[f"trained_on_{source}"] = _interval(
                np.concatenate(hits), np.concatenate(groups), seed
            )
        rows.append(row)
    return rows


def _even(table: Windows, even: bool) -> Any:
    """Rows whose run has an even (odd) hash, so that a run is in the same half of both tables."""
    import zlib

    ids = run_of(table.frame["source"]).to_list()
    return [(zlib.crc32(name.encode()) % 2 == 0) == even for name in ids]


def _interval(hits: Any, groups: Any, seed: int, rounds: int = 1000) -> dict[str, float]:
    import numpy as np

    _, at = np.unique(groups, return_inverse=True)
    right = np.bincount(at, hits.astype(float))
    of = np.bincount(at)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(of), (rounds, len(of)))
    means = right[drawn].sum(axis=1) / of[drawn].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return {"mean": float(hits.mean()), "lo": float(low), "hi": float(high)}
