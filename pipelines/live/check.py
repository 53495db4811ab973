"""Check that the agent computed the model's features bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from features import fixed_sbd
from features.fixed_series import Calls
from features.params import SbdParams
from features.spec import Feature


def compare(
    run: dict[str, Any], samples: Path, features: Sequence[Feature], params: SbdParams
) -> dict[str, int]:
    """Compare a run's features with :mod:`features.fixed_sbd` on the samples that the agent took.

    Parameters
    ----------
    run : dict
        A line of live.jsonl; the first subflow ran over WiFi.
    samples : Path
        File that the agent has written.
    features : sequence of Feature
        The model's columns.
    params : SbdParams
        The model's window settings.

    Returns
    -------
    dict
        ``windows``: how many Python finds; ``unequal``: how many have an integer that differs, or
        are found by one side alone.
    """
    table = np.loadtxt(samples, dtype=np.int64, ndmin=2).reshape(-1, 4)
    nothing = np.zeros(len(table), np.int64)
    made = Calls(
        subflow=table[:, 1],
        time_us=table[:, 0].astype(np.uint64),
        rtt_us=table[:, 2],
        ca_state=table[:, 3],
        is_ack=nothing.astype(np.bool_),
        acked_bytes=nothing.astype(np.uint64),
    )
    meant = fixed_sbd.evaluate(made, 0, params, features).x.tolist()
    live = [verdict["features"] for verdict in run["verdicts"]]
    differing = sum(a != b for a, b in zip(live, meant, strict=False))
    return {"windows": len(meant), "unequal": differing + abs(len(live) - len(meant))}
