"""How structures and discretisations do on sessions that training didn't see."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.qos.network import Network, fitted
from models.qos.structure import Edges
from models.qos.variables import QUALITY, SETTING, VARIABLES, of_group
from models.stats.intervals import Interval, by_connection

Float = NDArray[np.float64]
Ints = NDArray[np.int64]
CELLS = 64
"""Cells that each variable's range is divided into, the same for all discretisations."""
BINS = 10
OTHERS = {"equal width": "uniform", "quantile": "quantile", "k-means": "kmeans"}
"""Name -> strategy of `sklearn.preprocessing.KBinsDiscretizer`."""


def interval(values: Float, resamples: int) -> Interval:
    """Mean over sessions with its bootstrap interval."""
    return by_connection(values, np.arange(len(values)), resamples=resamples)


def given_settings(network: Network, quality: str) -> Float:
    """Distribution of one quality for each combination of settings; values are the last axis."""
    place = list(VARIABLES).index(quality)
    away = tuple(i for i in range(len(of_group(SETTING)), len(VARIABLES)) if i != place)
    return np.asarray(network.of_rest.sum(axis=away))


def calibration(network: Network, rows: Ints, quality: str) -> tuple[float, float]:
    """Expected calibration error in ten bins of probability, and accuracy.

    Every value of the quality counts in every session: how probable it was, whether it came.
    """
    told = given_settings(network, quality)[tuple(rows[:, : len(of_group(SETTING))].T)]
    truth = rows[:, list(VARIABLES).index(quality)]
    came = (truth[:, None] == np.arange(told.shape[1])).ravel().astype(np.float64)
    p = told.ravel()
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    gap = np.abs(np.bincount(bins, p, BINS) - np.bincount(bins, came, BINS))
    return float(gap.sum() / count.sum()), float((told.argmax(axis=1) == truth).mean())


def structure_row(
    name: str, network: Network, edges: Edges, rows: Ints, beside: Float, resamples: int
) -> dict[str, Any]:
    """A row of the table of structures; ``beside`` are the paper's log-likelihoods [n]."""
    own = network.log_likelihood(rows)
    judged = {one: calibration(network, rows, one) for one in of_group(QUALITY)}
    size = sum((t.shape[0] - 1) * t[0].size for _, t in network.tables.values())
    return {
        "name": name,
        "edges": len(edges),
        "parameters": int(size),
        "log_likelihood": interval(own, resamples),
        "more": interval(own - beside, resamples),
        "errors": {one: error for one, (error, _) in judged.items()},
        "accuracies": {one: right for one, (_, right) in judged.items()},
    }


def on_cells(values: Ints, x: Float, test: NDArray[np.bool_], edges: Edges, prior: float) -> Float:
    """Log-likelihood of held-out sessions as cells of a grid that all discretisations share.

    A session's cells are as probable as the network makes its values, times how often sessions of
    training with that value of a variable lie in that cell. So a discretisation gains nothing by
    narrow values, only by values that know of each other.

    Parameters
    ----------
    values : int64 array [n, variables]
        Of some discretisation.
    x : float64 array [n, variables]
        What was discretised.
    test : bool array [n]
        Held-out sessions.
    edges : tuple
        The network's structure.
    prior : float
        Equivalent sample size.

    Returns
    -------
    float64 array [held-out sessions]
    """
    cardinality = {name: int(values[:, i].max()) + 1 for i, name in enumerate(VARIABLES)}
    network = fitted(edges, values[~test], cardinality, prior)
    result = network.log_likelihood(values[test])
    for i, name in enumerate(VARIABLES):
        low, high = x[~test, i].min(), x[~test, i].max()
        cell = np.clip((CELLS * (x[:, i] - low) / (high - low)).astype(np.int64), 0, CELLS - 1)
        count = np.full((cardinality[name], CELLS), 0.5)
        np.add.at(count, (values[~test, i], cell[~test]), 1.0)
        share = count / count.sum(axis=1, keepdims=True)
        result = result + np.log(share[values[test, i], cell[test]])
    return result


def other_values(x: Float, test: NDArray[np.bool_], counts: list[int], strategy: str) -> Ints:
    """Values by `KBinsDiscretizer`, fitted to the training sessions; as many as Gaussians found."""
    from sklearn.preprocessing import KBinsDiscretizer

    columns = []
    for i, count in enumerate(counts):
        if count == 1:
            columns.append(np.zeros(len(x)))
            continue
        more = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
        bins = KBinsDiscretizer(
            n_bins=count,
            encode="ordinal",
            strategy=strategy,
            subsample=None,
            random_state=0,
            **more,
        )
        with warnings.catch_warnings():
            # Equal quantiles make a bin of no width, which is left out: the table's counts show it.
            warnings.filterwarnings("ignore", "Bins whose width are too small", UserWarning)
            bins.fit(x[~test, i : i + 1])
        columns.append(bins.transform(x[:, i : i + 1])[:, 0])
    return np.column_stack(columns).astype(np.int64)
