"""Defines a driven run: a draw of a scenario under one control."""

from __future__ import annotations

from dataclasses import dataclass

from data.lab.scenario import Scenario

KERNEL_CONTROLS = ("reno", "cubic", "bbr", "lia", "mpcdg")
TREE, NUWA, NUWA_TREE = "tree", "nuwa", "nuwa-tree"
INSIDE = (TREE, NUWA_TREE)
"""Controls whose policy is compiled into the kernel."""
AQM = "@aqm"
"""Behind a control's name: a policy runs the bottleneck's queue."""


@dataclass(frozen=True)
class Task:
    """A run to be done.

    Attributes
    ----------
    scenario, site : str
        Campaign and its group.
    control : str
        One of `KERNEL_CONTROLS`; ``agent``, ``agent+5ms`` (an engine that far away), ``tree`` (the
        policy inside the control), ``nuwa`` (Nuwa's receiver, CUBIC sending) or ``nuwa-tree`` (the
        same, with k chosen by a tree); each may have `AQM` behind it.
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
    def sending(self) -> str:
        """The control without the queue's policy."""
        return self.control.removesuffix(AQM)

    @property
    def behind_ms(self) -> int:
        """How far away the engine is."""
        return behind_ms(self.sending) or 0


def behind_ms(control: str) -> int | None:
    """How far away the engine of a control is; None if it has no engine."""
    control = control.removesuffix(AQM)
    kind, _, more = control.partition("+")
    if kind != "agent" or (more and not more.removesuffix("ms").isdecimal()):
        return None
    return int(more.removesuffix("ms") or 0) if more else 0


def policy_of(control: str, name: str, queue: str | None) -> str | None:
    """What a record says decided: a policy, a queue's, both, or None for the kernel's own.

    Parameters
    ----------
    control : str
    name : str
        What the command drives with.
    queue : str, optional
        What runs queues.
    """
    sending = control.removesuffix(AQM)
    parts = [] if sending in KERNEL_CONTROLS else [name]
    if control != sending:
        parts.append(str(queue))
    return "+".join(parts) or None
