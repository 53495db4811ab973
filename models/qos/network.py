"""The Bayesian network: fitted by pgmpy, asked by sums over its joint distribution.

Nine variables of three values have 19683 combinations: the whole joint distribution is a small
array, and every posterior is a ratio of two sums over it, exact up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.qos.structure import Edges
from models.qos.variables import SETTING, VARIABLES, of_group

Float = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """Tables of the network's variables.

    Attributes
    ----------
    tables : mapping
        Variable -> (its parents, float64 array [values, parents' values ...]).
    """

    tables: Mapping[str, tuple[tuple[str, ...], Float]]

    @property
    def cardinality(self) -> dict[str, int]:
        """How many values each variable has."""
        return {name: self.tables[name][1].shape[0] for name in VARIABLES}

    @cached_property
    def joint(self) -> Float:
        """Probability of each combination, float64 array with an axis per variable."""
        axis = {name: place for place, name in enumerate(VARIABLES)}
        operands: list[Any] = []
        for name, (parents, table) in self.tables.items():
            operands += [table, [axis[one] for one in (name, *parents)]]
        return np.asarray(np.einsum(*operands, list(axis.values()), optimize="greedy"))

    def posterior(self, wanted: Sequence[str], given: Mapping[str, int]) -> Float:
        """Distribution of some variables where others have known values.

        Returns
        -------
        float64 array
            An axis per wanted variable.

        Raises
        ------
        ValueError
            When what is given can't be.
        """
        index = tuple(given.get(name, slice(None)) for name in VARIABLES)
        left = [name for name in VARIABLES if name not in given]
        part = self.joint[index]
        away = tuple(place for place, name in enumerate(left) if name not in wanted)
        found = part.sum(axis=away)
        total = float(found.sum())
        if total <= 0:
            raise ValueError("what is given has no probability")
        order = [name for name in left if name in wanted]
        return np.asarray(found.transpose([order.index(name) for name in wanted]) / total)

    @cached_property
    def of_rest(self) -> Float:
        """Probability of all other variables given the settings; settings are the first axes."""
        count = len(of_group(SETTING))
        rest = tuple(range(count, len(VARIABLES)))
        return np.asarray(self.joint / self.joint.sum(axis=rest, keepdims=True))

    def log_likelihood(self, rows: Ints) -> Float:
        """Logarithm of each row's probability; int64 array [n, variables] -> [n]."""
        return np.asarray(np.log(self.joint[tuple(rows.T)]))


def fitted(edges: Edges, rows: Ints, cardinality: Mapping[str, int], sample_size: float) -> Network:
    """Estimate the tables of a structure by BDeu.

    Parameters
    ----------
    edges : tuple of (cause, effect)
    rows : int64 array [n, variables]
    cardinality : mapping
        Variable -> how many values it has, whether or not each occurs.
    sample_size : float
        Equivalent sample size of the prior.
    """
    import logging

    import pandas as pd
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteBayesianEstimator

    # With every fit it logs what kind of numbers it has found.
    logging.getLogger("pgmpy").setLevel(logging.WARNING)
    model = DiscreteBayesianNetwork(edges)
    model.add_nodes_from(list(VARIABLES))
    states = {name: list(range(cardinality[name])) for name in VARIABLES}
    estimator = DiscreteBayesianEstimator(
        state_names=states, prior_type="BDeu", equivalent_sample_size=sample_size
    )
    estimator.fit(model, pd.DataFrame(rows, columns=list(VARIABLES)))
    tables = {}
    for found in estimator.parameters_:
        name, *parents = found.variables
        tables[str(name)] = (tuple(map(str, parents)), np.asarray(found.values, dtype=np.float64))
    return Network(tables)
