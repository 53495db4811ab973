"""Small statistics of two series that stay defined when a series is constant or empty."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Float = NDArray[np.float64]

_TINY = 1e-9


@numba.njit(cache=True)
def correlation(x: Float, y: Float) -> float:
    """Pearson's correlation; 0 when either series is constant."""
    dx, dy = x - x.mean(), y - y.mean()
    spread = np.sqrt((dx * dx).sum() * (dy * dy).sum())
    return (dx * dy).sum() / spread if spread > _TINY * x.size else 0.0


@numba.njit(cache=True)
def concordance(x: Float, y: Float) -> float:
    """Lin's concordance: correlation that also asks for equal means and spreads; 0 if undefined."""
    mean_x, mean_y = x.mean(), y.mean()
    covariance = ((x - mean_x) * (y - mean_y)).mean()
    total = x.var() + y.var() + (mean_x - mean_y) ** 2
    return 2.0 * covariance / total if total > _TINY else 0.0


@numba.njit(cache=True)
def best_lag(x: Float, y: Float, lags: int, agree: bool) -> tuple[float, int]:
    """Largest correlation (concordance if ``agree``) over shifts of -lags..lags points.

    Returns
    -------
    float
        The largest value.
    int
        By how many points ``y`` comes later than ``x`` there.
    """
    best, at = -2.0, 0
    n = x.size
    for lag in range(-lags, lags + 1):
        first, second = (x[: n - lag], y[lag:]) if lag >= 0 else (x[-lag:], y[: n + lag])
        value = concordance(first, second) if agree else correlation(first, second)
        if value > best:
            best, at = value, lag
    return best, at


@numba.njit(cache=True)
def moving_average(x: Float, width: int) -> Float:
    """Centred mean over ``width`` points, over fewer at the edges."""
    n = x.size
    sums = np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + x[i]
    out = np.empty(n)
    for i in range(n):
        first, last = max(0, i - width // 2), min(n, i + (width + 1) // 2)
        out[i] = (sums[last] - sums[first]) / (last - first)
    return out


def ranks(x: Float) -> Float:
    """Ranks scaled to 0..1, equal values share their mean rank."""
    if x.size < 2:
        return np.full(x.size, 0.5)
    ordered = np.sort(x)
    low = np.searchsorted(ordered, x, "left")
    high = np.searchsorted(ordered, x, "right") - 1
    return np.asarray((low + high) / 2 / (x.size - 1))


def log_ratio(x: float, y: float, high: float = 4.0, floor: float = 0.0) -> float:
    """``|ln(x / y)|``, the same for both orders; both raised to ``floor`` first."""
    x, y = max(x, floor, _TINY), max(y, floor, _TINY)
    return min(abs(float(np.log(x / y))), high)


def ks_distance(x: Float, y: Float) -> float:
    """Kolmogorov-Smirnov: largest gap between the two empirical distributions."""
    both = np.concatenate([x, y])
    left = np.searchsorted(np.sort(x), both, "right") / x.size
    right = np.searchsorted(np.sort(y), both, "right") / y.size
    return float(np.abs(left - right).max())


def overlap(x: NDArray[np.bool_], y: NDArray[np.bool_]) -> float:
    """Share of the time in which both hold among that in which one does; 0 if none does."""
    either = np.count_nonzero(x | y)
    return np.count_nonzero(x & y) / either if either else 0.0


def nearest_gap(times: Int, others: Int) -> Float:
    """Distance from each time to the nearest of ``others`` (ascending); infinity without any."""
    if others.size == 0:
        return np.full(times.size, np.inf)
    at = np.searchsorted(others, times)
    after = others[np.minimum(at, others.size - 1)]
    before = others[np.maximum(at - 1, 0)]
    return np.asarray(np.minimum(np.abs(after - times), np.abs(times - before)), np.float64)


def coincidence(first: Int, second: Int, reach_us: float, span_us: float) -> tuple[float, float]:
    """How often events of two kinds come within ``reach_us`` of each other.

    Returns
    -------
    share : float
        Mean over both directions of the share of events with one of the other kind nearby;
        0 when either has none.
    excess : float
        ``share`` less what independent events of these rates would give, in -1..1.
    """
    if first.size == 0 or second.size == 0:
        return 0.0, 0.0
    shares, chances = [], []
    for times, others in ((first, second), (second, first)):
        shares.append(float(np.mean(nearest_gap(times, others) <= reach_us)))
        chances.append(1.0 - float(np.exp(-2.0 * reach_us * others.size / span_us)))
    share = sum(shares) / 2
    return share, share - sum(chances) / 2


def band_coherence(x: Float, y: Float, low: float, high: float) -> tuple[float, float]:
    """Agreement of two series within a band of frequencies, over a Hann window.

    Parameters
    ----------
    x, y : float64 array [n]
        Series.
    low, high : float
        Band in cycles per point, both ends included; at least the two lowest bins are taken.

    Returns
    -------
    coherence : float
        Magnitude of the summed cross-spectrum over the summed spectra, 0..1.
    in_phase : float
        Its real part, -1..1: a band-limited correlation.
    """
    n = x.size
    window = np.hanning(n + 2)[1:-1]
    spectrum_x = np.fft.rfft((x - x.mean()) * window)
    spectrum_y = np.fft.rfft((y - y.mean()) * window)
    first = max(1, int(np.ceil(low * n)))
    last = max(first + 1, int(np.floor(high * n)))
    u, v = spectrum_x[first : last + 1], spectrum_y[first : last + 1]
    power = float(np.sqrt(np.sum(np.abs(u) ** 2) * np.sum(np.abs(v) ** 2)))
    if power <= _TINY * n:
        return 0.0, 0.0
    cross = np.sum(u * np.conj(v)) / power
    return min(1.0, float(np.abs(cross))), float(cross.real)
