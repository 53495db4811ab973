"""The budget gate: the candidate's costs, measured now, must be within its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from data.strict import Strict
from pipelines.gates import Finding
from pipelines.gates.certificate import TARGETS

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison


class Settings(Strict):
    """Settings under ``promotion.gates.budget``.

    Attributes
    ----------
    limits : mapping
        Registered name -> limits as ``cczoo verify --budget`` takes them; a group's model has
        those of the pooled one.
    targets : tuple of str
        Targets that are measured, named as for the certificate gate.
    """

    limits: dict[str, str] = Field(default_factory=dict)
    targets: tuple[str, ...] = TARGETS


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Refuse a candidate whose certificate has costs above the limits."""
    from export.budget import parse_budget

    pooled = comparison.name.partition(".")[0]
    limits = settings.limits.get(comparison.name, settings.limits.get(pooled, ""))
    if not limits:
        return Finding(None, "no budget set")
    certificate = comparison.proof(comparison.candidate, settings.targets)
    verdict = parse_budget(limits).judge([t for t in certificate["targets"] if "target" in t])
    reason = limits if verdict["met"] else "; ".join(verdict["problems"])
    return Finding(verdict["met"], reason, {"limits": limits, **verdict})
