"""The 18 features of SmartSBD's Table 3 (smartsbd.txt section 3.2), by the paper's names.

A distance of vectors adds RTT, state and throughput, so their units are weights. The paper is
silent about them; here RTT is in 100 ms, throughput in 10 Mbit/s and the congestion state 0 or
1, which brings all three to the order of 1 on the paper's paths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from features.arrays import Float
from features.spec import Feature
from features.windows import Window

RTT_UNIT_US = 100_000.0
THROUGHPUT_UNIT_BPS = 10_000_000.0

DISTANCE_HIGH = 16384.0
DISTANCE_SCALE = 1 << 16
RATIO_HIGH = 1024.0
RATIO_SCALE = 1 << 20
_ZERO = 1e-9
"""Spreads up to this are rounding: the mean of equal numbers needn't equal them."""

_TABLE = "smartsbd.txt Table 3"
_SERIES = {
    "RTT": "RTT",
    "CState": "congestion state",
    "Thpt": "EWMA throughput",
}
_COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("RTT",),
    ("CState",),
    ("Thpt",),
    ("RTT", "CState"),
    ("CState", "Thpt"),
    ("RTT", "Thpt"),
    ("RTT", "CState", "Thpt"),
)


def _distance(parts: tuple[str, ...], kind: str) -> Feature:
    metric = {"ED": "Euclidean", "DTWD": "dynamic time warping"}[kind]
    series = ", ".join(_SERIES[part] for part in parts)
    return Feature(
        name="_".join((*parts, kind)),
        unit="1 (RTT / 100 ms, state 0 or 1, throughput / 10 Mbit/s)",
        low=0.0,
        high=DISTANCE_HIGH,
        scale=DISTANCE_SCALE,
        source=_TABLE,
        doc=f"{metric} distance of the two subflows' ({series}) series",
    )


def _ratio(name: str, what: str) -> Feature:
    return Feature(
        name=name,
        unit="1",
        low=0.0,
        high=RATIO_HIGH,
        scale=RATIO_SCALE,
        source=_TABLE,
        doc=f"{what}, other subflow over WiFi; 1 if both are 0, {RATIO_HIGH:.0f} if WiFi's is",
    )


FEATURES: tuple[Feature, ...] = (
    *(_distance(parts, kind) for kind in ("ED", "DTWD") for parts in _COMBINATIONS[:3]),
    *(_distance(parts, kind) for kind in ("ED", "DTWD") for parts in _COMBINATIONS[3:6]),
    *(_distance(_COMBINATIONS[6], kind) for kind in ("ED", "DTWD")),
    _ratio("Min_RTT_Ratio", "ratio of the smallest RTTs before the window"),
    _ratio("RTT_SD_Ratio", "ratio of the standard deviations of the RTT series"),
    _ratio("CState_SD_Ratio", "ratio of the standard deviations of the congestion state series"),
    _ratio("Thpt_SD_Ratio", "ratio of the standard deviations of the throughput series"),
)
"""In the order of Table 3; a column per entry."""


def compute(windows: Sequence[Window]) -> Float:
    """All 18 features of many windows.

    Parameters
    ----------
    windows : sequence of Window
        Windows of one connection or of many.

    Returns
    -------
    float64 array [len(windows), 18]
        Columns as :data:`FEATURES`, clipped to their ranges.
    """
    columns: dict[str, Float] = {feature.name: np.empty(len(windows)) for feature in FEATURES}
    series = [_series(window) for window in windows]
    for row, (window, parts) in enumerate(zip(windows, series, strict=True)):
        squared = {name: np.sum((pair[0] - pair[1]) ** 2) for name, pair in parts.items()}
        for names in _COMBINATIONS:
            columns["_".join((*names, "ED"))][row] = np.sqrt(sum(squared[n] for n in names))
        wifi_rtt_us, other_rtt_us = window.min_rtt_us
        columns["Min_RTT_Ratio"][row] = ratio(other_rtt_us, wifi_rtt_us)
        for name, pair in parts.items():
            wifi_sd, other_sd = pair.std(axis=1)
            columns[f"{name}_SD_Ratio"][row] = ratio(other_sd, wifi_sd)
    _warp(series, columns)
    table = np.stack([columns[feature.name] for feature in FEATURES], axis=1)
    return np.clip(table, [f.low for f in FEATURES], [f.high for f in FEATURES])


def ratio(value: float, base: float) -> float:
    """``value / base``, finite everywhere: 1 for 0/0, the top of the range for x/0."""
    if base > _ZERO:
        return min(value / base, RATIO_HIGH)
    return 1.0 if value <= _ZERO else RATIO_HIGH


def _series(window: Window) -> dict[str, Float]:
    return {
        "RTT": window.rtt_us / RTT_UNIT_US,
        "CState": window.congested,
        "Thpt": window.throughput_bps / THROUGHPUT_UNIT_BPS,
    }


def _warp(series: Sequence[dict[str, Float]], columns: dict[str, Float]) -> None:
    """Fill the DTWD columns: all windows of one length are computed in one call."""
    # Code that only asks what the features are doesn't wait for the compiler's library.
    from features.dtw import dtw_stacked

    by_length: dict[int, list[int]] = {}
    for row, parts in enumerate(series):
        by_length.setdefault(parts["RTT"].shape[1], []).append(row)
    for rows in by_length.values():
        stacked = {
            name: np.stack([series[row][name] for row in rows]) for name in _SERIES
        }  # [rows, 2, points]
        for dims in (1, 2, 3):
            combinations = [names for names in _COMBINATIONS if len(names) == dims]
            points = np.concatenate(
                [np.stack([stacked[n] for n in names], axis=-1) for names in combinations]
            )  # [combinations * rows, 2, points, dims]
            distances = dtw_stacked(points[:, 0], points[:, 1])
            for at, names in enumerate(combinations):
                columns["_".join((*names, "DTWD"))][rows] = distances[
                    at * len(rows) : (at + 1) * len(rows)
                ]
