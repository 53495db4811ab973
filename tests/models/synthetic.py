"""Tables in the shape of the features Parquet, with a known share of signal."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import polars as pl

from features.sbd import features_of
from features.spec import Feature

SITES = ("shanghai", "guangzhou", "silicon-valley", "frankfurt")
WIDE = 16
"""Features whose range ends above this are distances and ratios, most of them near its begin."""
MIDDLE = 4.0
"""What such a feature is where nothing speaks for either class."""
FAMILIES = ("wired", "wifi", "lte", "bloated", "lossy")


def features(
    seed: int = 0, per_site: int = 20, per_family: int = 16, per_case: int = 3, windows: int = 3
) -> pl.DataFrame:
    """A table whose first features of each family tell SB from NSB, with noise per connection."""
    rng = np.random.default_rng(seed)
    families = [
        features_of(family) for family in ("smartsbd", "smartsbd-plus", "smartsbd-plus-kernel")
    ]
    rows: list[dict[str, object]] = []
    numbers = count()

    def add(dataset: str, label: str, family: str | None, case: str | None) -> None:
        sign = 1.0 if label == "SB" else -1.0
        connection = f"c{next(numbers):05d}"
        own = rng.normal(0, 0.4)
        for window in range(windows):
            row: dict[str, object] = {
                "source": f"{connection}.klog.zst",
                "connection": connection,
                "window": window,
                "label": label,
                "start_us": 10_000_000 + window * 2_000_000,
                "end_us": 12_000_000 + window * 2_000_000,
                "rtt_kind": "raw",
                "dataset": dataset,
                "family": family,
                "case": case,
                "cc": "bpf_lia",
            }
            for of_family in families:
                for i, feature in enumerate(of_family):
                    strong = i < 4 or feature.name in (
                        "RTT_SD_Ratio",
                        "Corr",
                        "Fixed_RTT_SD_Ratio",
                        "Fixed_Corr",
                    )
                    value = sign * (0.9 if strong else 0.1) + own + rng.normal(0, 0.8)
                    row[feature.name] = _within(feature, value)
            rows.append(row)

    for site in SITES:
        for i in range(per_site):
            add(site, ("SB", "NSB")[i % 2], None, None)
    for family in FAMILIES:
        for i in range(per_family):
            add("random", ("SB", "NSB")[i % 2], family, None)
    for label in ("SB", "NSB"):
        for number in range(1, 6):
            for _ in range(per_case):
                add("table6", label, None, f"{label}{number}")
    return pl.DataFrame(rows, infer_schema_length=None)


def _within(feature: Feature, value: float) -> float:
    """A value around 0 as one that the feature can have: fixed-point forms cut off others."""
    if feature.high > WIDE:
        return feature.low + max(0.0, value + MIDDLE)
    return feature.low + (feature.high - feature.low) / (1 + math.exp(-value))
