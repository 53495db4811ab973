"""The network as a table over its settings, in forms that exporters and the command take."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.qos.network import Network
from models.qos.table import SCALE, Borders
from models.qos.variables import QUALITY, RUNTIME, SETTING, VARIABLES, of_group

Float = NDArray[np.float64]
ONE = 1 << 30
"""Probability 1 in the table of advice."""


def outcomes(borders: Borders) -> list[tuple[int, ...]]:
    """Values of all qualities together, the last one's counting fastest."""
    counts = [borders.cardinality[name] for name in of_group(QUALITY)]
    return list(itertools.product(*map(range, counts)))


def labels(borders: Borders) -> tuple[str, ...]:
    """A label for each of `outcomes`: ``psnr_good_buffer_high``."""
    words = {name: VARIABLES[name].names(borders.cardinality[name]) for name in of_group(QUALITY)}
    return tuple(
        "_".join(f"{name}_{words[name][value]}" for name, value in zip(words, one, strict=True))
        for one in outcomes(borders)
    )


def of_outcomes(network: Network) -> Float:
    """Probability of each outcome for each combination of settings: [bw1, bw2, rate, outcomes]."""
    first = len(of_group(SETTING))
    away = tuple(range(first, first + len(of_group(RUNTIME))))
    found = network.of_rest.sum(axis=away)
    return np.asarray(found.reshape(*found.shape[:first], -1))


def tree(network: Network, borders: Borders) -> Any:
    """The same table as a regression tree, exact on every number of the features' grid.

    It is grown on points right beside the borders, so that it splits at the borders themselves.
    """
    from sklearn.tree import DecisionTreeRegressor

    table = of_outcomes(network)
    half = 1 / (2 * SCALE)
    axes = []
    for name in of_group(SETTING):
        edges = borders.of[name]
        points = [(0.0, 0)] if not edges else []
        points += [(edge - half, i) for i, edge in enumerate(edges)]
        points += [(edge + half, i + 1) for i, edge in enumerate(edges)]
        axes.append(points)
    rows = list(itertools.product(*axes))
    x = np.array([[point for point, _ in row] for row in rows])
    y = np.array([table[tuple(value for _, value in row)] for row in rows])
    return DecisionTreeRegressor(random_state=0).fit(x, y)


def advice_file(network: Network, borders: Borders, name: str) -> bytes:
    """``advice.json``: all that `models.qos.advice` asks, as whole numbers."""
    variables = {
        key: {
            "unit": one.unit,
            "group": one.group,
            "values": list(one.names(borders.cardinality[key])),
            "borders": list(borders.of[key]),
        }
        for key, one in VARIABLES.items()
    }
    settings = int(np.prod([borders.cardinality[key] for key in of_group(SETTING)]))
    table = np.rint(network.of_rest.reshape(settings, -1) * ONE).astype(np.int64).tolist()
    content = {"format": "cczoo-advice-1", "model": name, "one": ONE, "variables": variables}
    return json.dumps({**content, "table": table}, separators=(",", ":")).encode()


def network_file(network: Network) -> bytes:
    """``network.json``: each variable's parents and table."""
    tables = {
        name: {"parents": list(parents), "table": np.round(table, 12).tolist()}
        for name, (parents, table) in network.tables.items()
    }
    return json.dumps(tables, separators=(",", ":")).encode()
