"""The registry of what may drive live connections: policies by hand, and trained ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from data.lab.follow import Settings
from features.spec import schema_hash
from features.tcco import FEATURES, TccoObservation
from models.drive.deciding import Policy
from models.drive.scripted import SCRIPTED, scripted


@dataclass(frozen=True)
class Driving:
    """A policy, and what it takes to drive by it.

    Attributes
    ----------
    name : str
    make : callable
        A policy that remembers nothing yet.
    schema : str
        SHA-256 of what it observes and how.
    observation : TccoObservation
    params : mapping
        Of its environment: bounds, unit and start of the windows; those that are missing are
        `data.lab.follow.Settings`' own.
    """

    name: str
    make: Callable[[], Policy]
    schema: str
    observation: TccoObservation
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def min_cwnd(self) -> int:
        """Least window, in segments."""
        return self.settings().min_cwnd

    def settings(self, **more: Any) -> Settings:
        """What the control in the kernel is loaded with."""
        own = ("min_cwnd", "max_cwnd", "most_held", "start_cwnd", "start_intervals",
               "probe_intervals", "reach", "step_share", "step_segments")  # fmt: skip
        seen = self.observation
        return Settings(
            interval_us=seen.interval_us,
            schema=self.schema,
            life_intervals=max(1, seen.lifetime_us // seen.interval_us),
            span_intervals=seen.peak_intervals,
            explore_after=seen.explore_after,
            **{name: self.params[name] for name in own if name in self.params},
            **more,
        )


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
