"""Whether the agent computed what the model's features mean, bit for bit."""

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
    """A run's verdicts beside :mod:`features.fixed_sbd` on the very samples the agent took.

    Parameters
    ----------
    run : dict
        A line of live.jsonl; the first subflow ran over WiFi.
    samples : Path
        Written by the agent.
    features : sequence of Feature
        The model's columns.
    params : SbdParams
        Window settings, the model's.

    Returns
    -------
    dict
        ``windows`` that Python finds; ``unequal``: those of which any integer differs, or which
        one side alone has.
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
