"""Defines a driven run: a draw of a scenario under one control."""

from __future__ import annotations

from dataclasses import dataclass

from data.lab.scenario import Scenario

KERNEL_CONTROLS = ("reno", "cubic", "bbr", "lia")
TREE, NUWA = "tree", "nuwa"


@dataclass(frozen=True)
class Task:
    """A run to be done.

    Attributes
    ----------
    scenario, site : str
        Campaign and its group.
    control : str
        One of `KERNEL_CONTROLS`; ``agent``, ``agent+5ms`` (an engine that far away), ``tree`` (the
        policy inside the control) or ``nuwa`` (Nuwa's receiver, CUBIC sending).
    repeat, seed : int
    drawn : Scenario
    """

    scenario: str
    site: str
    control: str
    repeat: int
    seed: int
    drawn: Scenario

    @property
    def name(self) -> str:
        """Name of the task's files."""
        return f"{self.scenario}-{self.site}-{self.control}-{self.repeat}"

    @property
    def behind_ms(self) -> int:
        """How far away the engine is."""
        return behind_ms(self.control) or 0


def behind_ms(control: str) -> int | None:
    """How far away the engine of a control is; None if it has no engine."""
    kind, _, more = control.partition("+")
    if kind != "agent" or (more and not more.removesuffix("ms").isdecimal()):
        return None
    return int(more.removesuffix("ms") or 0) if more else 0
