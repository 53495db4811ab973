"""The registry of what may drive live connections: policies by hand, and trained ones."""

from __future__ import annotations

from features.spec import schema_hash
from features.tcco import FEATURES, TccoObservation
from models.drive.driving import Driving
from models.drive.scripted import SCRIPTED, scripted


def is_scripted(name: str) -> bool:
    """Whether a name is of a policy by hand."""
    return name.partition(":")[0] in SCRIPTED


def driving(name: str, observation: TccoObservation | None = None) -> Driving:
    """What a name stands for.

    Parameters
    ----------
    name : str
        ``tracking:1.25``, ``constant:100``; a zoo entry, a bundle, or the folder of either.
    observation : TccoObservation, optional
        How a policy by hand observes.

    Raises
    ------
    UserError
        There is none, or it sets no windows of TCCO's kind.
    """
    if is_scripted(name):
        seen = observation or TccoObservation()
        scripted(name)
        return Driving(name, lambda: scripted(name), schema_hash(FEATURES, seen.model_dump()), seen)
    from models.drive.trained import trained

    return trained(name)
