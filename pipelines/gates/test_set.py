"""The test-set gate: the candidate must not lose to the champion on the fixed test set.

A loss within a margin is let pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from data.strict import Strict
from pipelines.gates import Finding

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison


class Settings(Strict):
    """Settings under ``promotion.gates.test-set``.

    Attributes
    ----------
    margin : float
        Loss of accuracy, per window and per connection, that is let pass; for families whose worth
        is no share, in units of a typical worth (:class:`models.judged.Paired`).
    min_windows : int
        A test of fewer windows, or whatever the family counts, decides nothing.
    """

    margin: float = Field(0.01, ge=0, le=1)
    min_windows: int = Field(30, ge=1, le=1_000_000_000)


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Compare the means of every quantity that the family pairs."""
    pairing = comparison.pairing
    if pairing.count < settings.min_windows:
        return Finding(
            False,
            f"{pairing.what}: {pairing.count} {pairing.leading}, {settings.min_windows} are needed",
            {pairing.leading: pairing.count},
        )
    evidence = {name: pair.figures() for name, pair in pairing.quantities.items()}
    if comparison.champion is None:
        mean = evidence[pairing.leading]["candidate"]
        meaning = pairing.quantities[pairing.leading].meaning
        return Finding(None, f"no champion to compare with; {mean:.3f} {meaning}", evidence)
    parts, passed = [], True
    for name, pair in pairing.quantities.items():
        lost = evidence[name]["difference"]
        passed &= lost["mean"] >= -settings.margin * pair.unit
        parts.append(f"{name} {lost['mean']:+.3f} [{lost['low']:+.3f}, {lost['high']:+.3f}]")
    return Finding(passed, f"{', '.join(parts)}; margin {settings.margin:g}", evidence)
