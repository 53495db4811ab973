"""Pairs of a wireless LAN and a cellular link: drawn by seed, or measured side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.netsim.scenario import Scenario
from data.video.dash import POLL_MBPS

DURATION_S = 60.0
KINDS = ("wifi", "cellular")
SHARE = 0.1
"""Share of the measured rates: the ladder ends at 6 Mbps, whole links would be idle mostly."""
QUEUE_MS = 300.0
"""Queue in front of a measured link, at its mean rate."""
DELAYS_MS = {"wifi": 10.0, "cellular": 40.0}
"""One way; measured pairs come without."""
LOSS = 1e-3


def drawn(pair: int, scheduler: str) -> Scenario:
    """A session over one pair; the same links for every scheduler.

    Mean rates are 0.5 to 6 Mbps, one-way delays 5 to 25 ms and 25 to 120 ms, losses up to 1 %,
    queues of 150 to 600 ms, drawn evenly in the logarithm; rates change as
    `data.netsim.traces.generate` makes them.
    """
    rng = np.random.default_rng([pair, 17])

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    links: dict[str, Any] = {}
    for kind, delays in (("wifi", (5.0, 25.0)), ("cellular", (25.0, 120.0))):
        mean, delay = between(0.5, 6.0), between(*delays)
        links[kind] = {
            "generate": {"kind": kind, "mean_mbps": mean, "duration_s": DURATION_S, "seed": pair},
            "delay_ms": delay,
            "loss": between(1e-4, 1e-2),
            "queue_packets": max(10, round(between(150.0, 600.0) * mean * 1e3 / 8 / 1500)),
        }
    return _session(links, scheduler, DURATION_S, f"pair {pair}")


@dataclass(frozen=True)
class Pair:
    """Two links measured at the same time and place.

    Attributes
    ----------
    name : str
    mbps : dict
        Kind -> float64 array [seconds].
    """

    name: str
    mbps: dict[str, NDArray[np.float64]]

    def session(self, scheduler: str) -> Scenario:
        """A session as long as the pair was measured, at `SHARE` of its rates."""
        seconds = min(map(len, self.mbps.values()))
        links = {}
        for kind in KINDS:
            mbps = SHARE * self.mbps[kind][:seconds]
            links[kind] = {
                "steps": [(float(second), float(rate)) for second, rate in enumerate(mbps)],
                "period_s": float(seconds),
                "delay_ms": DELAYS_MS[kind],
                "loss": LOSS,
                "queue_packets": max(10, round(QUEUE_MS * float(mbps.mean()) * 1e3 / 8 / 1500)),
            }
        return _session(links, scheduler, float(seconds), self.name)


def measured(folder: Path) -> list[Pair]:
    """Pairs of a folder: ``NAME_wifi.csv`` and ``NAME_cellular.csv``, ``second,bytes per second``.

    Raises
    ------
    UserError
        When there are fewer than two pairs, or a file is not such a table.
    """
    suffix = f"_{KINDS[0]}.csv"
    names = sorted(path.name.removesuffix(suffix) for path in folder.glob(f"*{suffix}"))
    whole = [name for name in names if (folder / f"{name}_{KINDS[1]}.csv").is_file()]
    if len(whole) < 2:
        raise UserError(
            f"{folder}: {len(whole)} pairs: two at least of NAME_wifi.csv and NAME_cellular.csv "
            "are needed, lines of second,bytes"
        )
    return [
        Pair(name, {kind: _mbps(folder / f"{name}_{kind}.csv") for kind in KINDS}) for name in whole
    ]


def _mbps(path: Path) -> NDArray[np.float64]:
    try:
        table = np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not lines of second,bytes: {error}") from None
    if table.shape[1] != 2 or len(table) < 10 or not (table[:, 1] >= 0).all():
        raise UserError(f"{path}: ten lines at least of second,bytes were expected")
    return np.asarray(table[:, 1] * 8e-6)


def _session(
    links: dict[str, dict[str, Any]], scheduler: str, duration_s: float, name: str
) -> Scenario:
    back = {f"{kind}-back": {"delay_ms": links[kind]["delay_ms"]} for kind in KINDS}
    paths = [{"forward": [kind], "back": [f"{kind}-back"]} for kind in KINDS]
    flow = {"name": "video", "paths": paths, "rate_mbps": POLL_MBPS, "scheduler": scheduler,
            "window_bytes": 1_000_000}  # fmt: skip
    both: dict[str, Any] = {}
    for kind in KINDS:
        both |= {kind: links[kind], f"{kind}-back": back[f"{kind}-back"]}
    return Scenario.parse({"duration_s": duration_s, "links": both, "flows": [flow]}, name)
