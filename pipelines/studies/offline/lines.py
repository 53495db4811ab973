"""Lines of the study's tables."""

from __future__ import annotations

from data.results import Result
from pipelines.studies.offline.statistics import Estimate

CLONE = "bc"
LOGGED, HINDSIGHT = "best logged control", "best in hindsight"


class Row(Result):
    """A player of the table.

    Attributes
    ----------
    player : str
        A method, `LOGGED`, `HINDSIGHT`, or the zoo's agent.
    who : str
        Who plays under that name, standing by standing.
    seeds : int
    scores : dict
        Group of families -> score.
    to_clone, to_logged, to_online : Estimate or None
        How much more power it has in all families than behaviour cloning, the best logged control
        and the agent that learned online.
    reward : Estimate or None
        The mean of a step in the environment's test episodes.
    """

    player: str
    who: str
    seeds: int
    scores: dict[str, Estimate]
    to_clone: Estimate | None
    to_logged: Estimate | None
    to_online: Estimate | None
    reward: Estimate | None


class Ratio(Result):
    """Online trainings that began with a method's network, beside those from nothing.

    Attributes
    ----------
    method : str
    seeds, missed : int
        Trainings, and those that never did as well: they count with all their steps.
    whole : Estimate
        Steps until the return at the end of the training from nothing with the same seed, over all
        steps of that.
    own : Estimate
        The same, over the steps after which that one had this return for the first time.
    """

    method: str
    seeds: int
    missed: int
    whole: Estimate
    own: Estimate
