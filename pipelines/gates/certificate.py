"""Exported now, built and run here: every target answers as the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.strict import Strict
from pipelines.gates import Finding

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison

TARGETS = ("c", "table", "bpf", "mlp-c", "python", "json", "onnx")


class Settings(Strict):
    """``promotion.gates.certificate``.

    Attributes
    ----------
    targets : tuple of str
        Those of them that can carry the model are proved.
    """

    targets: tuple[str, ...] = TARGETS


def check(comparison: Comparison, settings: Settings) -> Finding:
    """At least one target proved, none differing; what can't run on this machine is named."""
    certificate = comparison.proof(comparison.candidate, settings.targets)
    targets = certificate["targets"]
    proved = [t["target"] for t in targets if t.get("mismatches") == 0 and "error" not in t]
    unproved = [t["target"] for t in targets if "missing" in t]
    wrong = [t["target"] for t in targets if t["target"] not in (*proved, *unproved)]
    problems = [*certificate["problems"], *(f"{name} differs or fails" for name in wrong)]
    if not proved:
        problems.append("no target was proved")
    evidence = {"certificate": certificate}
    if problems:
        return Finding(False, "; ".join(problems), evidence)
    not_here = f"; can't run here: {', '.join(unproved)}" if unproved else ""
    return Finding(True, f"0 mismatches in {', '.join(proved)}{not_here}", evidence)
