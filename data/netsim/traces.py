"""Capacity of a link over time: trace files and a seeded generator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError, unknown_name
from data.netsim import wireless
from data.netsim.bounds import MOST_MBPS
from data.netsim.rates import OPPORTUNITIES, STEPS

MOST_BYTES = 256 << 20
"""Size of a trace file at most; one of a day at 100 Mbps is no larger."""
MOST_S = 1e6
"""Latest time of a trace."""

Series = tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any], int]
"""Kind (`STEPS`, `OPPORTUNITIES`), times (ns), rates (bit/s), period (ns, 0: hold)."""


def steps(pairs: list[tuple[float, float]], period_s: float | None) -> Series:
    """Rates from (time s, Mbps) pairs, ascending from time 0.

    Raises
    ------
    UserError
        When times don't ascend from 0, a rate is negative, or the period is too short.
    """
    times = np.array([round(t * 1e9) for t, _ in pairs], np.int64)
    rates = np.array([round(r * 1e6) for _, r in pairs], np.int64)
    period = round(period_s * 1e9) if period_s else 0
    if len(times) == 0 or times[0] != 0 or (np.diff(times) <= 0).any() or (rates < 0).any():
        raise UserError("steps: give (time s, Mbps) pairs with times ascending from 0, Mbps >= 0")
    if period and (period <= times[-1] or not rates.any()):
        raise UserError("period_s: must exceed the last step's time, and some rate must be > 0")
    return STEPS, times, rates, period


def read(path: Path) -> Series:
    """Read a trace file; it begins again at its end.

    One whole number a line is a mahimahi trace (ms of each opportunity to deliver 1500 bytes);
    two numbers a line are a time in s and a rate in Mbps.

    Raises
    ------
    UserError
        When the file can't be read or is neither.
    """
    try:
        if not path.is_file():
            raise UserError(f"{path}: no such file: give a readable trace")
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path}: above {MOST_BYTES >> 20} MiB: give a shorter trace")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: give a readable trace") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not text: a trace has one or two numbers a line") from None
    rows = [line.replace(",", " ").split() for line in lines if line.strip()[:1] not in {"", "#"}]
    try:
        table = [[float(word) for word in row] for row in rows]
    except ValueError:
        raise UserError(f"{path}: a trace has one or two numbers a line and no header") from None
    if not all(math.isfinite(number) for row in table for number in row):
        raise UserError(f"{path}: a trace has finite numbers only")
    if any(not -MOST_S * 1e3 <= number <= MOST_S * 1e3 for row in table for number in row):
        raise UserError(f"{path}: a number is beyond {MOST_S * 1e3:.0e}: times are ms, or s")
    if table and all(len(row) == 1 for row in table):
        milliseconds = np.array([row[0] for row in table])
        back = np.flatnonzero(np.diff(milliseconds) < 0)
        if len(back):
            first, second = milliseconds[back[0]], milliseconds[back[0] + 1]
            raise UserError(
                f"{path}: {second:g} ms after {first:g} ms: the times of a mahimahi trace don't "
                "descend: sort it (sort -n)"
            )
        times = (milliseconds * 1e6).astype(np.int64)
        if times[-1] <= 0 or times[0] < 0:
            raise UserError(f"{path}: a mahimahi trace ends after 0 ms")
        if len(times) * 1500 * 8e3 / int(times[-1]) > MOST_MBPS:
            raise UserError(f"{path}: carries more than {MOST_MBPS:g} Mbps: lines are ms")
        return OPPORTUNITIES, times, np.zeros(len(times), np.int64), int(times[-1])
    if len(table) > 1 and all(len(row) == 2 for row in table):
        if max(row[1] for row in table) > MOST_MBPS:
            raise UserError(f"{path}: carries more than {MOST_MBPS:g} Mbps")
        first = table[0][0]
        pairs = [(row[0] - first, row[1]) for row in table]
        try:
            return steps(pairs, 2 * pairs[-1][0] - pairs[-2][0])
        except UserError:
            raise UserError(f"{path}: times must ascend and some rate be above 0") from None
    raise UserError(f"{path}: a trace has one or two numbers on every line")


def generate(kind: str, mean_mbps: float, seed: int, duration_s: float = 120.0) -> Series:
    """Rates of a made-up wireless link, every 100 ms.

    Parameters
    ----------
    kind : str
        ``cellular`` (slow fading with deep dips), ``wifi`` (rate steps and short pauses) or
        ``satellite`` (a new level every 15 s, brief outages at the change): steady kinds, one
        trace much like the other; or one of `data.netsim.wireless.KINDS`.
    mean_mbps : float
        Mean rate aimed at.
    seed : int
        Same seed, same trace.
    duration_s : float, optional
        Length, after which it begins again.

    Raises
    ------
    UserError
        For an unknown kind.
    """
    rng = np.random.default_rng(seed)
    count = max(2, round(duration_s * 10))
    if kind == "cellular":
        slow = _walk(rng, count, 0.995, 0.45)
        fast = _walk(rng, count, 0.80, 0.35)
        rate = np.exp(slow + fast)
    elif kind == "wifi":
        ladder = np.array([0.25, 0.5, 0.75, 1.0, 1.25, 1.5])
        index = np.clip(np.round(3.0 + 1.5 * _walk(rng, count, 0.97, 1.0)), 0, 5).astype(int)
        rate = ladder[index] * rng.uniform(0.85, 1.0, count)
        rate[rng.random(count) < 0.01] *= 0.1
    elif kind == "satellite":
        slot = np.arange(count) // 150
        level = np.clip(rng.normal(1.0, 0.3, slot[-1] + 1), 0.2, None)
        rate = level[slot] * np.exp(_walk(rng, count, 0.9, 0.2))
        rate[(np.arange(count) % 150 < 2) & (rng.random(count) < 0.7)] *= 0.05
    elif kind in wireless.KINDS:
        rate = wireless.rates(wireless.KINDS[kind], count, rng)
    else:
        raise unknown_name("kind of link to generate", kind,
                           ["cellular", "satellite", "wifi", *wireless.KINDS])  # fmt: skip
    rate *= mean_mbps / rate.mean()
    pairs = [(0.1 * i, float(r)) for i, r in enumerate(np.maximum(rate, 0.05))]
    return steps(pairs, 0.1 * count)


def _walk(
    rng: np.random.Generator, count: int, memory: float, spread: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """First-order autoregressive series of the given standard deviation."""
    noise = rng.normal(0.0, spread * np.sqrt(1.0 - memory**2), count)
    series = np.empty(count)
    value = rng.normal(0.0, spread)
    for i in range(count):
        value = memory * value + noise[i]
        series[i] = value
    return series
