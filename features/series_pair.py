"""The raw pair of series of a window, for models that make their own features.

The three state variables of smartsbd.txt section 3.2 (RTT, congestion state, achieved throughput)
on :data:`CELLS` equal cells of the window, the RTT also over this window and those before it, and
the smallest RTT of each subflow. Values are in plain units and rounded to their fixed-point form;
whatever makes them scale-free is part of the model that reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from features.arrays import Float
from features.spec import Feature
from features.windows import Window

CELLS = 128
"""Cells of a window: 2.6 per larger min RTT, of which a window has 50."""
LONG_CELLS = 64
"""Cells of the time from :data:`LONG_WINDOWS` - 1 windows before the window's start to its end."""
LONG_WINDOWS = 8
SUBFLOWS = ("wifi", "other")
STATE_SCALE = 256
TOP = float(2**24)
"""Integers up to this are exact in float32: 16.8 s, 16.8 Gbit/s."""

_SOURCE = "smartsbd.txt section 3.2"


def _columns(subflow: str) -> list[Feature]:
    def cell(variable: str, unit: str, high: float, scale: int, doc: str) -> list[Feature]:
        return [
            Feature(f"{subflow}_{variable}_{k:03d}", unit, 0, high, scale, _SOURCE, doc)
            for k in range(CELLS)
        ]

    long = [
        Feature(f"{subflow}_Long_RTT_{k:02d}", "us", 0, TOP, 1, _SOURCE, "mean; 0 before the first")
        for k in range(LONG_CELLS)
    ]
    return [
        *cell("RTT", "us", TOP, 1, "mean of the cell"),
        *cell("CState", "1", 1, STATE_SCALE, "share of the cell in Recovery or Loss"),
        *cell("Thpt", "kbit/s", TOP, 1, "mean of the cell"),
        *long,
        Feature(f"{subflow}_Min_RTT", "us", 0, TOP, 1, _SOURCE, "smallest before the window"),
    ]


FEATURES: tuple[Feature, ...] = tuple(
    feature for subflow in SUBFLOWS for feature in _columns(subflow)
)
"""WiFi's columns, then the other subflow's in the same order."""

_SCALES = np.array([f.scale for f in FEATURES], dtype=np.float64)
_LOW = np.array([f.low for f in FEATURES])
_HIGH = np.array([f.high for f in FEATURES])


def cell_means(series: Float, cells: int) -> Float:
    """Means of a series over equal cells of its length.

    A value holds from its grid point to the next, so that a window of fewer points than cells and
    one of more are treated alike and nothing between two cells is lost.

    Parameters
    ----------
    series : float64 array [..., points]
        On an equidistant grid.
    cells : int
        How many.

    Returns
    -------
    float64 array [..., cells]
    """
    points = series.shape[-1]
    total = np.concatenate([np.zeros((*series.shape[:-1], 1)), series.cumsum(axis=-1)], axis=-1)
    edge = np.linspace(0.0, points, cells + 1)
    left = np.minimum(edge.astype(np.int64), points - 1)
    reached = total[..., left] + (edge - left) * series[..., left]
    return np.asarray(np.diff(reached, axis=-1) * (cells / points))


def long_rtt(window: Window) -> Float:
    """RTTs of this window and those before it, float64 array [2, LONG_CELLS] in us; 0 if not known.

    The last ``LONG_CELLS / LONG_WINDOWS`` cells are the window itself.
    """
    points = window.rtt_us.shape[1]
    known = min(window.history_rtt_us.shape[1], LONG_WINDOWS * points)
    cells = max(LONG_CELLS // LONG_WINDOWS, round(LONG_CELLS * known / (LONG_WINDOWS * points)))
    out = np.zeros((2, LONG_CELLS))
    out[:, LONG_CELLS - cells :] = cell_means(window.history_rtt_us[:, -known:], cells)
    return out


def compute(windows: Sequence[Window]) -> Float:
    """Series of many windows, side by side.

    Parameters
    ----------
    windows : sequence of Window
        Windows of one connection or of many.

    Returns
    -------
    float64 array [len(windows), len(FEATURES)]
        Columns as :data:`FEATURES`, clipped to their ranges and rounded to ``1 / scale``.
    """
    rows = np.array([_row(window) for window in windows]).reshape(-1, len(FEATURES))
    return np.asarray(np.clip(np.floor(rows * _SCALES + 0.5) / _SCALES, _LOW, _HIGH))


def _row(window: Window) -> Float:
    rtt_us = cell_means(window.rtt_us, CELLS)
    congested = cell_means(window.congested, CELLS)
    throughput_kbps = cell_means(window.throughput_bps, CELLS) / 1e3
    long_us = long_rtt(window)
    parts = [
        np.concatenate([rtt_us[i], congested[i], throughput_kbps[i], long_us[i]])
        for i in range(len(SUBFLOWS))
    ]
    return np.concatenate(
        [value for i, part in enumerate(parts) for value in (part, window.min_rtt_us[i : i + 1])]
    )
