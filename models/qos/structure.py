"""Which variable depends on which: the paper's Fig. 7 in two readings, and a learned structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.qos.variables import QUALITY, RUNTIME, SETTING, VARIABLES, of_group

if TYPE_CHECKING:
    import pandas as pd

Edges = tuple[tuple[str, str], ...]
KEPT = "paper"
"""Structure of the network that is kept: primary contexts are the parents of all the rest nodes."""


def chain() -> Edges:
    """Settings lead to delays and losses alone, and these to quality."""
    first = [(a, b) for a in of_group(SETTING) for b in of_group(RUNTIME)]
    return tuple(first + [(a, b) for a in of_group(RUNTIME) for b in of_group(QUALITY)])


def paper() -> Edges:
    """As `chain`, but settings are parents of quality too: "the parent of all the rest nodes"."""
    return chain() + tuple((a, b) for a in of_group(SETTING) for b in of_group(QUALITY))


def learned(values: pd.DataFrame, most_parents: int) -> Edges:
    """Hill climbing by the BDeu score; effects never come before their causes.

    Parameters
    ----------
    values : DataFrame [sessions, variables]
        Whole numbers.
    most_parents : int
        Of any variable.
    """
    from pgmpy.causal_discovery import ExpertKnowledge, HillClimbSearch

    groups = (SETTING, RUNTIME, QUALITY)
    order = ExpertKnowledge(temporal_order=[of_group(group) for group in groups])
    search = HillClimbSearch(
        scoring_method="bdeu",
        max_indegree=most_parents,
        expert_knowledge=order,
        return_type="dag",
        show_progress=False,
    )
    found = search.fit(values[list(VARIABLES)]).causal_graph_
    return tuple(sorted((str(a), str(b)) for a, b in found.edges()))
