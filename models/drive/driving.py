"""What drives live connections: a policy with all that the control in the kernel has to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from data.lab.follow import Settings
from features.tcco import TccoObservation
from models.drive.deciding import Policy


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
