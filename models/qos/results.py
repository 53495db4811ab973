"""What a training of the network of contexts leaves for the report, with its schema."""

from __future__ import annotations

from data.results import Result, ResultFile
from models.stats.intervals import Interval


class StructureRow(Result):
    """A structure on held-out sessions.

    Attributes
    ----------
    name : str
    edges, parameters : int
        Arrows, and free numbers of the tables.
    log_likelihood, more : Interval
        Logarithm of a session's probability (nats), and how much more that is than the paper's.
    errors : dict
        Quality -> expected calibration error of its distribution given the settings.
    accuracies : dict
        Quality -> share of sessions in which its most probable value is the one seen.
    """

    name: str
    edges: int
    parameters: int
    log_likelihood: Interval
    more: Interval
    errors: dict[str, float]
    accuracies: dict[str, float]


class DiscretiserRow(Result):
    """A discretisation on held-out sessions, by the density of what was measured.

    Attributes
    ----------
    name : str
    values : int
        Of all variables together.
    log_likelihood, more : Interval
        As of `StructureRow`, of cells that are the same for all; the difference is to Gaussians.
    """

    name: str
    values: int
    log_likelihood: Interval
    more: Interval


class Qos(Result):
    """``qos.json``.

    Attributes
    ----------
    sessions, held_out : int
    edges : dict
        Variable -> borders between its values, in its unit.
    rmse : dict
        Variable -> error of the sum of one, two, ... Gaussians, over the density's maximum.
    structures, discretisers : tuple
    learned : tuple
        Arrows of the structure that was learned, cause and effect.
    """

    sessions: int
    held_out: int
    edges: dict[str, tuple[float, ...]]
    rmse: dict[str, tuple[float, ...]]
    structures: tuple[StructureRow, ...]
    discretisers: tuple[DiscretiserRow, ...]
    learned: tuple[tuple[str, ...], ...]


QOS = ResultFile("qos.json", Qos, "cczoo train qos")
