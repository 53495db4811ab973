"""Groups of path conditions are found by clustering the RTT series of connections (tslearn).

A connection is seen as the RTTs of its two subflows over the time that both were alive, on a
grid of few points, as binary logarithms: twice the RTT is the same distance at 20 ms and at
200 ms, and both the level of a path and the rise and fall of its queue count. Time isn't scaled
to a common sawtooth: dynamic time warping aligns series whose queues fill at other moments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.strict import Strict
from features.dtw import dtw_stacked
from features.params import SbdParams
from features.resample import linear
from features.windows import Events, Series, choose_pair, trace, wifi_subflow
from models.sbd.conditions import medoids
from models.sbd.params import Conditions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNLIKE = "unlike-any"
"""Label of a connection that is farther from every centre than that centre's own members."""
FORMAT = 1
_PAIRS = 1 << 16
"""Pairs of series whose distances are computed at a time."""


class Clusters(Strict):
    """``groups.json``.

    Attributes
    ----------
    format : int
        Version of this file.
    settings : Conditions
        How series are made and how many were clustered.
    seed : int
        Seed of the fit.
    centres : tuple
        Floats nested as [k, points, 2]: log2 of RTTs in us, WiFi first.
    radius : tuple of float
        Largest distance of a member, per cluster: the quantile ``settings.radius``.
    sizes : tuple of int
        Members among the connections that were clustered.
    fitted : int
        How many those were.
    choice : tuple of mapping
        Per number of clusters tried: ``k``, ``silhouette``, ``spread`` (its standard deviation
        over halves), ``stability`` (adjusted Rand index of the clusterings of two halves).
    """

    format: int = FORMAT
    settings: Conditions
    seed: int
    centres: tuple[tuple[tuple[float, float], ...], ...]
    radius: tuple[float, ...]
    sizes: tuple[int, ...]
    fitted: int
    choice: tuple[dict[str, float], ...]

    @property
    def names(self) -> list[str]:
        """Labels of the clusters, ``path-1`` with the smallest RTTs first."""
        return [f"path-{number + 1}" for number in range(len(self.centres))]


@dataclass(frozen=True)
class Assigned:
    """The clusters to which N connections belong.

    Attributes
    ----------
    nearest : int64 array [N]
        Index of the nearest centre.
    distance : float64 array [N]
        From it.
    inside : bool array [N]
        Whether that is within the cluster's radius.
    """

    nearest: Ints
    distance: Floats
    inside: NDArray[np.bool_]

    def labels(self, clusters: Clusters) -> list[str]:
        """Label of each connection."""
        names = clusters.names
        pairs = zip(self.nearest, self.inside, strict=True)
        return [names[one] if inside else UNLIKE for one, inside in pairs]


def series(
    row: Mapping[str, Any], events: Events, settings: Conditions
) -> tuple[Floats | None, str]:
    """RTTs of a connection's two subflows on the grid.

    Parameters
    ----------
    row : mapping
        The connection's row; ``subflows`` and ``wifi_sport`` are used if present.
    events : mapping
        Its events.
    settings : Conditions
        ``span_s`` from the moment that both subflows have an RTT, or less if a log ends
        sooner, becomes ``points`` medians of ``oversampling`` points each: single late ACKs
        aren't a condition of the path.

    Returns
    -------
    float64 array [points, 2] or None
        log2 of RTTs in us, WiFi first (the subflow of smaller RTT if it isn't known).
    str
        Why there is none.
    """
    pair = choose_pair(events)
    if pair is None:
        return None, "fewer than two subflows"
    rtt = [trace(events[subflow], SbdParams()).rtt for subflow in pair]
    if min(one.time_us.size for one in rtt) == 0:
        return None, "no RTT on both subflows"
    start_us = max(int(one.time_us[0]) for one in rtt)
    end_us = min(min(int(one.time_us[-1]) for one in rtt), start_us + int(settings.span_s * 1e6))
    if end_us <= start_us:
        return None, "subflows were never alive at the same time"
    wifi = wifi_subflow(row)
    swap = wifi == pair[1] if wifi in pair else _smallest(rtt[1]) < _smallest(rtt[0])
    count = settings.points * settings.oversampling
    step_us = (end_us - start_us) / count
    fine = [linear(one.time_us, one.value, start_us + step_us / 2, step_us, count) for one in rtt]
    cells = np.stack(fine[::-1] if swap else fine).reshape(2, settings.points, -1)
    return np.log2(np.median(cells, axis=2)).T, ""


def distances(rows: Floats, centres: Floats) -> Floats:
    """Distance of every series to every centre.

    Parameters
    ----------
    rows : float64 array [N, points, 2]
    centres : float64 array [k, points, 2]

    Returns
    -------
    float64 array [N, k]
        DTW distance over the square root of ``points``: about the root mean square difference
        of the aligned RTTs, in octaves.
    """
    count, k = len(rows), len(centres)
    found = np.empty(count * k)
    for start in range(0, found.size, _PAIRS):
        pair = np.arange(start, min(start + _PAIRS, found.size))
        found[pair] = dtw_stacked(rows[pair // k], centres[pair % k])
    return np.asarray(found.reshape(count, k) / np.sqrt(rows.shape[1]))


def fit(rows: Floats, settings: Conditions, seed: int) -> Clusters:
    """Find the groups.

    On a seeded sample of ``settings.sample`` series: medoids of the full DTW matrix for every
    number of clusters, the number chosen by silhouette, the medoids then refined by tslearn's
    k-means with DTW barycentre averaging (Petitjean, Ketterlin, Gançarski 2011).

    Parameters
    ----------
    rows : float64 array [N, points, 2]
        As :func:`series` gives them.
    settings : Conditions
        See there.
    seed : int
        The same seed and rows give the same groups.

    Returns
    -------
    Clusters

    Raises
    ------
    UserError
        With fewer connections than two groups of the least size need.
    """
    need = 2 * settings.clusters[0] * settings.least
    if len(rows) < need:
        raise UserError(
            f"{len(rows)} connections have an RTT series on two subflows, groups need {need}: "
            "ingest more, or train without --conditions"
        )
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(rows))[: settings.sample])
    sample = rows[chosen]
    matrix = _square(sample)
    choice = medoids.choices(matrix, settings, rng)
    k = medoids.choose(choice)
    start = medoids.fit(matrix, k, rng, settings.starts).medoid
    centres = _refined(sample, sample[start], seed, settings.iterations)
    centres = centres[np.argsort(np.median(centres, axis=(1, 2)), kind="stable")]
    apart = distances(sample, centres)
    nearest, distance = apart.argmin(axis=1), apart.min(axis=1)
    # A cluster that averaging has left with a handful borrows the reach of them all.
    reach = float(np.quantile(distance, settings.radius))
    members = [distance[nearest == one] for one in range(k)]
    return Clusters(
        settings=settings,
        seed=seed,
        centres=tuple(map(_plain, centres)),
        radius=tuple(
            float(np.quantile(own, settings.radius)) if own.size >= settings.least else reach
            for own in members
        ),
        sizes=tuple(own.size for own in members),
        fitted=len(sample),
        choice=tuple(choice),
    )


def assign(clusters: Clusters, rows: Floats) -> Assigned:
    """Nearest centre of each connection, and whether it is near enough.

    Parameters
    ----------
    clusters : Clusters
        As :func:`fit` made them.
    rows : float64 array [N, points, 2]
        Made by :func:`series` with ``clusters.settings``.
    """
    apart = distances(rows, np.array(clusters.centres))
    nearest, distance = apart.argmin(axis=1), apart.min(axis=1)
    return Assigned(nearest, distance, distance <= np.array(clusters.radius)[nearest])


def dumps(clusters: Clusters) -> str:
    """``groups.json``: canonical JSON."""
    return json.dumps(clusters.model_dump(mode="json"), sort_keys=True) + "\n"


def loads(text: str, where: str) -> Clusters:
    """Read ``groups.json``.

    Raises
    ------
    UserError
        When it isn't one, or of another version or shape.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from None
    if not isinstance(tree, Mapping) or "centres" not in tree:
        raise UserError(
            f"{where}: no groups of path conditions: make them with "
            "`cczoo train sbd groups --conditions EVENTS`"
        )
    if tree.get("format") != FORMAT:
        raise UserError(f"{where}: format {tree.get('format')}, not {FORMAT}: fit the groups again")
    clusters = Clusters.parse(tree, where)
    lengths = {len(centre) for centre in clusters.centres}
    counts = {len(clusters.centres), len(clusters.radius), len(clusters.sizes)}
    if lengths != {clusters.settings.points} or len(counts) != 1:
        raise UserError(f"{where}: centres, radius and sizes don't belong together: restore it")
    return clusters


def stacked(rows: Iterable[Floats], points: int) -> Floats:
    """Series side by side, float64 array [N, points, 2]."""
    found: Sequence[Floats] = list(rows)
    return np.stack(found) if found else np.empty((0, points, 2))


def _smallest(one: Series) -> float:
    return float(one.value.min())


def _square(rows: Floats) -> Floats:
    """All distances among the rows, each pair computed once."""
    matrix = np.zeros((len(rows), len(rows)))
    for i in range(len(rows) - 1):
        matrix[i, i + 1 :] = distances(rows[i + 1 :], rows[i : i + 1])[:, 0]
    return matrix + matrix.T


def _refined(rows: Floats, start: Floats, seed: int, iterations: int) -> Floats:
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="h5py not installed")
        from tslearn.clustering import TimeSeriesKMeans

    machine = TimeSeriesKMeans(
        n_clusters=len(start),
        metric="dtw",
        init=start,
        max_iter=iterations,
        max_iter_barycenter=iterations,
        random_state=seed,
        n_jobs=1,
    )
    return np.asarray(machine.fit(rows).cluster_centers_, dtype=np.float64)


def _plain(centre: Floats) -> tuple[tuple[float, float], ...]:
    # Six decimals of an octave are a millionth of an RTT: the file stays readable.
    return tuple((round(float(a), 6), round(float(b), 6)) for a, b in centre)
