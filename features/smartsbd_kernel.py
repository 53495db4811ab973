"""Scale-free features for a kernel: those of ``smartsbd-plus`` that integers compute cheaply.

Their one definition is :func:`features.fixed_plus.values`, in whole numbers from the first step
on: a log, a live connection in C and a training see the same integers. Left out of the second
family are the coherences (a Fourier transform), what RFC 8382 counts packet by packet,
retransmissions (which no call tells of), coincidences beyond chance (an exponential), and dynamic
time warping (as dear as all others together).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from features.arrays import Float, Int
from features.fixed_cut import Cut
from features.fixed_plus import BLOCKS, View, block, thinned, values
from features.smartsbd_plus import FEATURES as PLUS
from features.spec import Feature
from features.windows import Window

PREFIX = "Fixed_"
LEFT_OUT = frozenset(
    ("Coherence_Low", "InPhase_Low", "Coherence_Mid", "InPhase_Mid", "Z_DTWD", "Queue_DTWD",
     "Residual", "Drain_Match", "Loss_Match", "Loss_Excess", "Rtx_Excess", "Skew_Diff",
     "Var_LogRatio", "Freq_Diff", "Loss_Diff")
)  # fmt: skip
FEATURES: tuple[Feature, ...] = tuple(
    replace(feature, name=PREFIX + feature.name, source=f"integer form of {feature.name}")
    for feature in PLUS
    if feature.name not in LEFT_OUT
)


def compute(windows: Sequence[Window]) -> Float:
    """All features of many windows.

    Parameters
    ----------
    windows : sequence of Window
        Windows of one connection or of many.

    Returns
    -------
    float64 array [len(windows), len(FEATURES)]
        Multiples of 1/65536, columns as :data:`FEATURES`.
    """
    rows = []
    for window in windows:
        found = values(view(window))
        rows.append([found[feature.name.removeprefix(PREFIX)] for feature in FEATURES])
    return np.array(rows, np.float64).reshape(-1, len(FEATURES)) / (1 << 16)


def view(window: Window) -> View:
    """A window of a log as the features take it: RTTs in whole microseconds."""
    rtt_us = np.floor(window.history_rtt_us + 0.5).astype(np.int64)
    points = window.rtt_us.shape[1]
    ends = range(rtt_us.shape[1] - points, 0, -points)
    earlier = [thinned(rtt_us[:, max(0, end - points) : end], points) for end in ends]
    newest = block(rtt_us[:, -points:], window.congested > 0, int(window.step_us * (1 << 16)))
    pairs = list(zip(window.min_rtt_us, window.traces, strict=True))
    base_us = [int(min(known, float(trace.rtt.value.min()))) for known, trace in pairs]
    known_us = [int(known) for known, _ in pairs]
    return View(earlier[::-1], newest, (known_us[0], known_us[1]), (base_us[0], base_us[1]))


def holds(features: Sequence[Feature]) -> bool:
    """Whether all of these features are this family's, as they are defined now."""
    return bool(features) and {f.meaning for f in features} <= {f.meaning for f in FEATURES}


class Measure:
    """Features of a connection's windows as exported code has them, one window after the other.

    Unlike a log's, its history is of windows in which neither subflow was idle, each on the grid
    that it had itself.

    Parameters
    ----------
    features : sequence of Feature
        The columns.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self.names = [feature.name.removeprefix(PREFIX) for feature in features]
        self.history: list[Int] = []

    def __call__(self, window: Cut) -> list[int]:
        """The row of the next window."""
        newest = block(window.series["RTT"], window.series["CState"] > 0, window.step_q16)
        found = values(View(self.history, newest, window.min_rtt_us, window.base_us))
        self.history = [*self.history, newest.rtt_us][-(BLOCKS - 1) :]
        return [found[name] for name in self.names]
