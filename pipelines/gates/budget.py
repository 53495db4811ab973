"""What the candidate costs, measured now, is within its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from data.strict import Strict
from pipelines.gates import Finding
from pipelines.gates.certificate import TARGETS

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison


class Settings(Strict):
    """``promotion.gates.budget``.

    Attributes
    ----------
    limits : mapping
        Registered name -> limits as ``cczoo verify --budget`` takes them; a group's model has
        those of the pooled one.
    targets : tuple of str
        Measured; as the certificate's.
    """

    limits: dict[str, str] = Field(default_factory=dict)
    targets: tuple[str, ...] = TARGETS


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Hold the certificate's costs to the limits."""
    from export.budget import parse_budget

    pooled = comparison.name.partition(".")[0]
    limits = settings.limits.get(comparison.name, settings.limits.get(pooled, ""))
    if not limits:
        return Finding(None, "no budget set")
    certificate = comparison.proof(comparison.candidate, settings.targets)
    verdict = parse_budget(limits).judge([t for t in certificate["targets"] if "target" in t])
    reason = limits if verdict["met"] else "; ".join(verdict["problems"])
    return Finding(verdict["met"], reason, {"limits": limits, **verdict})
