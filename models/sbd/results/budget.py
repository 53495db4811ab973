"""What ``cczoo train sbd budget`` writes."""

from __future__ import annotations

from data.results import Result, ResultFile
from models.sbd.results.groups import LeftOut
from models.sbd.results.search import Setting
from models.stats.intervals import Interval


class Costed(Result):
    """A model that was tried: its accuracy on connections left out and what it costs.

    ``costs`` are by figure of a budget, ``estimated`` names those that could not be measured.
    """

    name: str
    classifier: str
    features: tuple[str, ...]
    settings: dict[str, Setting]
    accuracy: Interval
    kind: str
    nodes: int
    steps: int
    costs: dict[str, int | float]
    estimated: tuple[str, ...]


class OnFront(Costed):
    """One that no other beats; ``exceeds`` says what of the budget it is above."""

    exceeds: tuple[str, ...]


class Front(Result):
    """``pareto.json``; ``bpf`` says why BPF's cost could not be measured, or ``measured``."""

    model: str
    family: str
    budget: dict[str, int | float]
    windows: int
    dropped: LeftOut
    connections: int
    tried: int
    bpf: str
    front: tuple[OnFront, ...]
    chosen: Costed | None
    nearest: Costed


PARETO = ResultFile("pareto.json", Front, "cczoo train sbd budget LIMITS")
