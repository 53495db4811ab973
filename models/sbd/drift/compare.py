"""Judge whether a model's conditions have changed so much that it must learn again.

Per group of connections: the Kolmogorov-Smirnov distance of every feature with a permutation
null over connections, one p-value per group from them (Simes 1986), false discoveries controlled
over features and over groups (Benjamini and Hochberg 1995), a classifier two-sample test as one
figure for all features together, and if the new logs have labels the change in accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError
from models.parallel import Progress, silent
from models.sbd.drift import reference as references
from models.sbd.drift.reference import Reference
from models.sbd.groups.labels import label
from models.sbd.params import THRESHOLD, Drift
from models.sbd.windows import Windows
from models.stats import twosample

Floats = NDArray[np.float64]

ALL = "ALL"
"""The one group if nothing is grouped by."""
KEEP, RETRAIN, UNKNOWN = "keep", "retrain", "can't tell"
RESAMPLES = 1000
FIGURES = {
    "accuracy": "model.right",
    "sb_share": "model.shared",
    "confidence": "model.confidence",
}
"""What is printed of the answers -> its sum in `Reference.held_out`."""


def compare(
    reference: Reference,
    new: Windows,
    probability: Floats,
    names: Sequence[str],
    by: Sequence[str],
    settings: Drift,
    seed: int,
    progress: Progress = silent,
    threshold: float = THRESHOLD,
) -> dict[str, Any]:
    """Compare new logs with a training set.

    Parameters
    ----------
    reference : Reference
        The training set.
    new : Windows
        N rows, finite in ``names``, labelled or not.
    probability : float64 array [N]
        The model's P(SB) of each.
    names : sequence of str
        The model's features.
    by : sequence of str
        Attribute columns that both sides have; none compares all with all.
    settings : Drift
        See there.
    seed : int
        Seed of permutations, folds and draws.
    progress : callable
        Over groups.
    threshold : float
        The model's own threshold: it answers SB above it.

    Returns
    -------
    dict
        ``verdict`` (keep or retrain), ``reason``, ``drift``, ``groups`` (one dict each, see
        :func:`_group`), ``absent`` (groups of the training set without new logs).

    Raises
    ------
    UserError
        When no group has enough connections on both sides.
    """
    from scipy.stats import false_discovery_control

    old_label, new_label = _labels(reference.table.frame, by), _labels(new.frame, by)
    own = references.answers(new, probability, names, threshold)
    held = reference.held_out
    found = []
    groups = sorted(set(new_label) - {""})
    for number, name in enumerate(progress(groups, "drift", len(groups))):
        known = old_label == name
        row: dict[str, Any] = {"group": name, "in_training": bool(known.any())}
        # Conditions that training hasn't seen are compared with all that it has.
        old = reference.table.take(known) if known.any() else reference.table
        mine = new.take(new_label == name)
        row |= _features(old, mine, names, settings, seed + number)
        stored = None if held is None else held.filter(_member(held, by, name, known.any()))
        row |= _answers(own.filter(_labels(own, by) == name), stored, len(groups), seed)
        found.append(row)
    told = [row for row in found if row["p"] is not None]
    if not told:
        most = max((min(r["connections"], r["reference_connections"]) for r in found), default=0)
        raise UserError(
            f"can't tell: needs {settings.least} connections with usable features on both sides, "
            f"the largest group has {most}: collect more, or give --by fewer columns"
        )
    adjusted = false_discovery_control([row["p"] for row in told])
    for row, q in zip(told, adjusted, strict=True):
        row["q"] = float(q)
    for row in found:
        row |= judge(row, settings)
    return {
        **overall(found),
        "groups": found,
        "absent": sorted(set(old_label) - set(groups) - {""}),
    }


def judge(row: Mapping[str, Any], settings: Drift) -> dict[str, Any]:
    """Verdict on one group: ``drift``, ``verdict``, ``reason``."""
    change = row["accuracy_change"]
    falls = change is not None and change["high"] < 0
    if row["p"] is None and not falls:
        text = f"{row['connections']} and {row['reference_connections']} connections"
        reason = f"{text}: needs {settings.least} on both sides"
        return {"drift": None, "verdict": UNKNOWN, "reason": reason}
    moved = [f for f in row["features"] if f["q"] <= settings.level and f["ks"] >= settings.effect]
    drift = row["p"] is not None and row["q"] <= settings.level and bool(moved)
    if falls:
        reason = f"accuracy fell by {-change['mean']:.3f} [{-change['high']:.3f}, "
        return {
            "drift": drift,
            "verdict": RETRAIN,
            "reason": reason + f"{-change['low']:.3f}]",
        }
    if not drift:
        return {"drift": False, "verdict": KEEP, "reason": "no feature has moved"}
    what = f"{len(moved)} of {len(row['features'])} features have moved, most {moved[0]['name']}"
    if change is not None and change["low"] > -settings.margin:
        return {"drift": True, "verdict": KEEP, "reason": f"{what}; accuracy holds"}
    known = (
        "accuracy isn't known to hold" if change is not None else "no labels to say at what cost"
    )
    where = "" if row["in_training"] else "; not a group of the training set"
    return {"drift": True, "verdict": RETRAIN, "reason": f"{what}; {known}{where}"}


def overall(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One verdict over all groups: retrain if any group needs it."""
    bad = [row for row in groups if row["verdict"] == RETRAIN]
    drift = any(row["drift"] for row in groups)
    if bad:
        first = min(bad, key=lambda row: 1.0 if row.get("q") is None else row["q"])
        text = f"{first['group']}: {first['reason']}"
        more = f" (and {len(bad) - 1} more of {len(groups)} groups)" if len(bad) > 1 else ""
        return {"verdict": RETRAIN, "drift": drift, "reason": text + more}
    silent_groups = sum(row["verdict"] == UNKNOWN for row in groups)
    text = "inputs have moved, accuracy holds" if drift else "no feature has moved"
    if silent_groups:
        text += f"; {silent_groups} of {len(groups)} groups have too few connections to tell"
    return {"verdict": KEEP, "drift": drift, "reason": text}


def _features(
    old: Windows, new: Windows, names: Sequence[str], settings: Drift, seed: int
) -> dict[str, Any]:
    """Distances of one group's features: counts, ``p``, ``features``, ``auc``, ``novel``."""
    from scipy.stats import false_discovery_control

    counts = {
        "windows": len(new),
        "connections": np.unique(new.group).size,
        "reference_connections": np.unique(old.group).size,
    }
    if min(counts["connections"], counts["reference_connections"]) < settings.least:
        return {**counts, "p": None, "q": None, "features": [], "auc": None, "novel": None}
    mine = references.thin(references.sample(new, settings.newest, seed), settings.windows)
    matrix = np.concatenate([old.matrix(names), mine.matrix(names)])
    sides = [np.unique(table.group, return_inverse=True)[1] for table in (old, mine)]
    first = int(sides[0].max()) + 1
    group = np.concatenate([sides[0], sides[1] + first])
    is_new = np.arange(group.max() + 1) >= first
    rng = np.random.default_rng(seed)
    ks, p = twosample.kolmogorov_smirnov(matrix, group, is_new, settings.permutations, rng)
    q = false_discovery_control(p)
    rows: list[dict[str, Any]] = [
        {"name": name, "ks": float(ks[i]), "p": float(p[i]), "q": float(q[i])}
        | _shift(matrix[: len(old), i], matrix[len(old) :, i])
        for i, name in enumerate(names)
    ]
    rows.sort(key=lambda row: (-row["ks"], row["name"]))
    return {
        **counts,
        "p": float(q.min()),  # Simes: the smallest adjusted p-value
        "q": None,
        "features": rows,
        "auc": twosample.classifier_auc(matrix, group, is_new, settings.trees, seed),
        "novel": twosample.novel_share(matrix, group, is_new),
    }


def _shift(old: Floats, new: Floats) -> dict[str, float]:
    return {"reference_median": float(np.median(old)), "median": float(np.median(new))}


def _answers(
    own: pl.DataFrame, held: pl.DataFrame | None, groups: int, seed: int
) -> dict[str, Any]:
    """The model's answers on new logs, beside those on the logs that training left out."""
    found: dict[str, Any] = {}
    stored = None if held is None or held.is_empty() else held
    for name, column in FIGURES.items():
        mine, other = _rates(own, column), None if stored is None else _rates(stored, column)
        found[name] = _interval(mine, seed)
        found[f"stored_{name}"] = None if other is None else _interval(other, seed)
    mine = _rates(own, "model.right")
    # Two connections at least on either side, or nothing varies.
    found["accuracy_change"] = None
    if stored is not None:
        other = _rates(stored, "model.right")
        if min(len(mine), len(other)) > 1:
            # As many groups are looked at, as much surer each has to be (Bonferroni).
            found["accuracy_change"] = _difference(mine, other, 0.05 / groups, seed)
    return found


def _rates(frame: pl.DataFrame, column: str) -> Floats:
    """Sum and windows [C, 2] of the connections where the figure is known."""
    both = frame.select(pl.col(column).cast(pl.Float64), "model.windows").to_numpy()
    return np.asarray(both[np.isfinite(both[:, 0])], dtype=np.float64)


def _resampled(rates: Floats, rng: np.random.Generator) -> Floats:
    count = len(rates)
    weight = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return np.asarray((weight @ rates[:, 0]) / (weight @ rates[:, 1]))


def _interval(rates: Floats, seed: int) -> dict[str, float] | None:
    if not len(rates):
        return None
    low, high = np.quantile(_resampled(rates, np.random.default_rng(seed)), [0.025, 0.975])
    mean = float(rates[:, 0].sum() / rates[:, 1].sum())
    return {"mean": mean, "low": float(low), "high": float(high)}


def _difference(new: Floats, old: Floats, level: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    apart = _resampled(new, rng) - _resampled(old, rng)
    low, high = np.quantile(apart, [level / 2, 1 - level / 2])
    mean = new[:, 0].sum() / new[:, 1].sum() - old[:, 0].sum() / old[:, 1].sum()
    return {"mean": float(mean), "low": float(low), "high": float(high)}


def _labels(frame: pl.DataFrame, by: Sequence[str]) -> NDArray[np.str_]:
    """Group of each row; empty if an attribute is missing."""
    if not by:
        return np.full(frame.height, ALL)
    return frame.select(label(by).fill_null("")).to_series().to_numpy().astype(np.str_)


def _member(frame: pl.DataFrame, by: Sequence[str], name: str, known: bool) -> pl.Series:
    """Rows of a group, all of them for a group that training hasn't seen."""
    if not known:
        return pl.Series(np.full(frame.height, True))
    return pl.Series(_labels(frame, by) == name)


def names_of(groups: Iterable[Mapping[str, Any]], limit: int) -> list[str]:
    """Features that moved most in any group, at most ``limit``."""
    best: dict[str, float] = {}
    for row in groups:
        for feature in row["features"]:
            best[feature["name"]] = max(best.get(feature["name"], 0.0), feature["ks"])
    return sorted(best, key=lambda name: -best[name])[:limit]
