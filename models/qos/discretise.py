"""Context discretisation by a sum of Gaussians (mp-cdg.txt algorithm 1, equations 5 and 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

Float = NDArray[np.float64]
GRID = 256
"""Points at which a density is known while Gaussians are fitted to it."""
FINE = 4096
"""Points among which the borders between values are looked for."""


class GaussianDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn each column into whole numbers: which of some Gaussians a value belongs to most.

    A column's density, by kernels, is approximated by a sum of Gaussians; each, over the largest
    coefficient, is the membership function of one value, and a sample has the value whose
    membership is largest. Beyond the outermost means a sample has the outermost value, and values
    rise with what they stand for, so that each is one interval; the paper is silent on both.

    Parameters
    ----------
    terms : int, default=3
        Gaussians at most.
    tolerance : float, default=0.05
        One more is taken only if it lowers the root-mean-square error by this share.
    samples : int, default=2000
        The density is estimated from an even selection of so many sorted samples.

    Attributes
    ----------
    edges_ : list of float64 arrays
        Of each column: a sample's value is the number of edges below it.
    memberships_ : list of float64 arrays [values, 3]
        Coefficient, mean and deviation (k, mu and sigma of equation 6) of each value.
    rmse_ : list of float64 arrays
        Error with one Gaussian, with two, ..., over the largest density.
    """

    def __init__(self, terms: int = 3, tolerance: float = 0.05, samples: int = 2000) -> None:
        self.terms = terms
        self.tolerance = tolerance
        self.samples = samples

    def fit(self, X: Any, y: Any = None) -> GaussianDiscretizer:
        """Find each column's Gaussians, and the borders between them."""
        x = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.terms < 1:
            raise ValueError(f"terms={self.terms}: one at least was expected")
        found = [_fitted(column, self) for column in x.T]
        self.memberships_ = [terms for terms, _ in found]
        self.rmse_ = [errors for _, errors in found]
        self.edges_ = [
            _borders(terms, column) for terms, column in zip(self.memberships_, x.T, strict=True)
        ]
        return self

    def transform(self, X: Any) -> Float:
        """Values from 0 on, float64 array [n, d]."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        columns = zip(self.edges_, x.T, strict=True)
        return np.column_stack([np.searchsorted(e, c, side="left") for e, c in columns]).astype(
            np.float64
        )


def membership(terms: Float, x: Float) -> Float:
    """Equation 6 for each Gaussian, coefficients over the largest: float64 array [n, values]."""
    k, mean, deviation = terms.T
    return np.asarray(k / k.max() * np.exp(-(((x[:, None] - mean) / deviation) ** 2)))


def _fitted(column: Float, by: GaussianDiscretizer) -> tuple[Float, Float]:
    """Gaussians of one column sorted by their means, and the error of each number of them."""
    from scipy.stats import gaussian_kde

    ordered = np.sort(column)
    kept = ordered[np.unique(np.linspace(0, len(ordered) - 1, by.samples).round().astype(np.int64))]
    centre, scale = float(kept.mean()), float(kept.std())
    single = np.array([[1.0, centre, scale or 1.0]])
    if scale <= 1e-12 * max(1.0, abs(centre)) or len(np.unique(kept)) < 3:
        return single, np.zeros(1)
    z = (kept - centre) / scale
    at = np.linspace(z[0], z[-1], GRID)
    density = gaussian_kde(z)(at)
    best = single
    errors: list[float] = []
    for count in range(1, by.terms + 1):
        terms, error = _least_squares(at, density / density.max(), z, count)
        if not errors or error < (1 - by.tolerance) * min(errors):
            best = terms * (1.0, scale, scale) + (0.0, centre, 0.0)
        errors.append(error)
    return best[np.argsort(best[:, 1])], np.array(errors)


def _least_squares(at: Float, density: Float, z: Float, count: int) -> tuple[Float, float]:
    from scipy.optimize import least_squares

    starts = np.quantile(z, (np.arange(count) + 0.5) / count)
    begin = np.column_stack([np.full(count, 0.7), starts, np.full(count, 1.2 / count)])
    width = at[-1] - at[0]
    low = np.tile([1e-3, at[0], width / GRID], count)
    high = np.tile([2.0, at[-1], 2 * width], count)

    def residual(flat: Float) -> Float:
        k, mean, deviation = flat.reshape(-1, 3).T
        return np.asarray(
            (k * np.exp(-(((at[:, None] - mean) / deviation) ** 2))).sum(axis=1) - density
        )

    inside = np.clip(begin.ravel(), low + 1e-9, high - 1e-9)
    found = least_squares(residual, inside, bounds=(low, high), max_nfev=300)
    return found.x.reshape(-1, 3), float(np.sqrt(np.mean(found.fun**2)))


def _borders(terms: Float, column: Float) -> Float:
    """Where the largest membership passes from one value to the next; values never fall."""
    if len(terms) == 1:
        return np.empty(0)
    x = np.linspace(column.min(), column.max(), FINE)
    inside = np.clip(x, terms[0, 1], terms[-1, 1])
    value = np.maximum.accumulate(membership(terms, inside).argmax(axis=1))
    at = np.flatnonzero(np.diff(value))
    return np.asarray((x[at] + x[at + 1]) / 2, dtype=np.float64)
