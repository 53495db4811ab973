"""Seeded rate series of cellular- and WiFi-like links, as steps files for the link emulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from data.errors import unknown_name

STEP_S = 0.1


@dataclass(frozen=True)
class Process:
    """Mean-reverting log rate: d(ln r) = -(ln r)·dt/reversion_s + noise, with outages.

    ``spread`` is the stationary standard deviation of ln(rate / median); an outage begins at
    ``outage_per_s``, lasts ``outage_s`` on average and leaves ``outage_share`` of the mean.
    """

    reversion_s: float
    spread: float
    outage_per_s: float
    outage_s: float
    outage_share: float


# Fading of a moving phone changes within seconds and is deep; contention in a WiFi cell is
# quicker and shallower.
PROCESSES = {
    "cellular": Process(2.0, 0.45, 0.03, 0.25, 0.08),
    "wifi": Process(0.6, 0.25, 0.02, 0.12, 0.15),
}


def series(kind: str, mean_mbps: float, duration_s: float, seed: int) -> npt.NDArray[np.float64]:
    """Generate one rate series.

    Parameters
    ----------
    kind : str
        A name in `PROCESSES`.
    mean_mbps : float
        Mean of the series, met exactly.
    duration_s : float
        Length; the emulator loops at its end.
    seed : int
        Same seed, same series.

    Returns
    -------
    float64 array [n, 2]
        Time in s (steps of 0.1 s) and rate in Mbps.

    Raises
    ------
    UserError
        Unknown kind.
    """
    if kind not in PROCESSES:
        raise unknown_name("rate process", kind, PROCESSES)
    process = PROCESSES[kind]
    rng = np.random.default_rng(seed)
    n = max(2, round(duration_s / STEP_S))
    keep = float(np.exp(-STEP_S / process.reversion_s))
    noise = rng.normal(0, process.spread * np.sqrt(1 - keep**2), n)
    log_rate = np.empty(n)
    log_rate[0] = rng.normal(0, process.spread)
    for i in range(1, n):
        log_rate[i] = keep * log_rate[i - 1] + noise[i]
    rate = np.exp(log_rate)
    for start in np.flatnonzero(rng.random(n) < process.outage_per_s * STEP_S):
        length = 1 + int(rng.exponential(process.outage_s) / STEP_S)
        rate[start : start + length] = process.outage_share
    rate *= mean_mbps / rate.mean()
    return np.column_stack([np.arange(n) * STEP_S, rate])


def write(path: Path, rates: npt.NDArray[np.float64]) -> None:
    """Write a steps file: a line of time in s and rate in Mbps per step."""
    lines = (f"{t:.3f} {rate:.4f}\n" for t, rate in rates)
    path.write_text("".join(lines), encoding="ascii")
