"""No worse than the champion, beyond a margin, on the fixed test set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from data.strict import Strict
from pipelines.gates import Finding

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison


class Settings(Strict):
    """``promotion.gates.test-set``.

    Attributes
    ----------
    margin : float
        Loss of accuracy, per window and per connection, that is let pass.
    min_windows : int
        A smaller test set shows nothing.
    """

    margin: float = Field(0.01, ge=0, le=1)
    min_windows: int = Field(30, ge=1, le=1_000_000_000)


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Compare means over windows and over connections."""
    test = comparison.test
    if len(test.table) < settings.min_windows:
        return Finding(
            False,
            f"{test.what}: {len(test.table)} windows, {settings.min_windows} are needed",
            {"windows": len(test.table)},
        )
    paired = {"windows": comparison.windows, "connections": comparison.connections}
    evidence = {name: pair.figures() for name, pair in paired.items()}
    if comparison.champion is None:
        mean = evidence["windows"]["candidate"]
        return Finding(None, f"no champion to compare with; {mean:.3f} of windows right", evidence)
    parts, passed = [], True
    for name, figures in evidence.items():
        lost = figures["difference"]
        passed &= lost["mean"] >= -settings.margin
        parts.append(f"{name} {lost['mean']:+.3f} [{lost['low']:+.3f}, {lost['high']:+.3f}]")
    return Finding(passed, f"{', '.join(parts)}; margin {settings.margin:g}", evidence)
