"""Rows in the shape of the series Parquet: pairs of random walks."""

from __future__ import annotations

import numpy as np
import polars as pl

from features.series_pair import CELLS, FEATURES, LONG_CELLS
from models.sbd.neural.network import SIDE


def make_rows(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of random walks, one walk for both where the bottleneck is shared, in plain units."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    rows = np.zeros((count, 2, SIDE))
    walks = np.abs(rng.normal(0, 1, (count, 2, CELLS)).cumsum(axis=2))
    walks[labels == 1, 1] = walks[labels == 1, 0]
    base = rng.uniform(5e3, 1e5, (count, 2, 1))
    rows[:, :, :CELLS] = base + 4e3 * walks + rng.exponential(300, walks.shape)
    rows[:, :, CELLS : 2 * CELLS] = walks > 8
    rows[:, :, 2 * CELLS : 3 * CELLS] = rng.uniform(5e3, 2e4, (count, 2, 1))
    rows[:, :, 3 * CELLS + LONG_CELLS // 2 : -1] = base * 1.2
    rows[:, :, -1] = base[:, :, 0]
    return np.floor(rows).reshape(count, -1).astype(np.float32), labels


def table(connections: int, windows: int = 2, seed: int = 0) -> pl.DataFrame:
    """A labelled table of the four sites, the campaign in three families, and Table 6."""
    rows, labels = make_rows(2 * connections * windows, seed)
    kinds = [("shanghai", None, None), ("frankfurt", None, None), ("table6", "table6", "SB1")]
    kinds += [("random", family, None) for family in ("wired", "wifi", "lte")]
    number = np.arange(len(rows)) // (2 * windows) * 2 + labels
    chosen = [kinds[int(n) // 2 % len(kinds)] for n in number]
    start_us = 10_000_000 + 2_000_000 * (np.arange(len(rows)) // 2 % windows)
    fixed = pl.DataFrame(
        {
            "source": [f"c{n:04d}.klog.zst" for n in number],
            "connection": [f"c{n:04d}" for n in number],
            "window": np.arange(len(rows)) // 2 % windows,
            "label": np.where(labels == 1, "SB", "NSB"),
            "start_us": start_us,
            "end_us": start_us + 2_000_000,
            "rtt_kind": "raw",
            "dataset": [dataset for dataset, _, _ in chosen],
            "family": [family for _, family, _ in chosen],
            "case": [case for _, _, case in chosen],
        }
    )
    names = [feature.name for feature in FEATURES]
    return pl.concat([fixed, pl.DataFrame(rows.astype(float), schema=names)], how="horizontal")
