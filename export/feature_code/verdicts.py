"""Verdicts over several windows in integers: what :mod:`models.sbd.accumulate` does, in a kernel.

Of a linear model a window's log-odds are its score, so that accumulation and "don't know" are
three multiplications: ``state = decay * state + temperature * (slope * log-odds + offset)``, kept
within ``bound`` times the limit at which a verdict falls. All numbers have 16 fractional bits and
are rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from data.errors import UserError
from export.forms.linear import Linear
from export.ir import Form
from export.render import render
from export.source import Source
from models.sbd.accumulate import NSB, SB, UNDECIDED, verdicts_of
from models.stats.calibration import CLIP

Q16 = 1 << 16


@dataclass(frozen=True)
class IntegerVerdicts:
    """Settings of verdicts as exported code has them.

    Attributes
    ----------
    shift : int
        Fractional bits of a score.
    log_odds_most, gain, offset, decay, limit, bound : int
        In 1/65536: the largest log-odds of a window; temperature times slope; temperature times
        offset; what is left of the state after a window; where a verdict falls; the largest state.
    """

    shift: int
    log_odds_most: int
    gain: int
    offset: int
    decay: int
    limit: int
    bound: int

    def believe(self, state: int, score: int) -> int:
        """State after one more window."""
        down = self.shift - 16
        log_odds = score >> down if down >= 0 else score << -down
        log_odds = max(-self.log_odds_most, min(self.log_odds_most, log_odds))
        state = (self.decay * state >> 16) + (self.gain * log_odds >> 16) + self.offset
        return max(-self.bound, min(self.bound, state))

    def decide(self, state: int) -> int:
        """Verdict: 1 SB, 0 NSB, -1 undecided."""
        return SB if state >= self.limit else NSB if state <= -self.limit else UNDECIDED

    def run(self, scores: Iterable[int]) -> list[int]:
        """Verdicts of a connection after each of its windows."""
        found, state = [], 0
        for score in scores:
            state = self.believe(state, int(score))
            found.append(self.decide(state))
        return found


def integer_verdicts(settings: Mapping[str, Any], form: Form | None) -> IntegerVerdicts | None:
    """What exported code has of a model's settings; None if the model has no bounded state.

    Parameters
    ----------
    settings : mapping
        :attr:`export.source.Source.verdicts`.
    form : Form or None
        The model.

    Raises
    ------
    UserError
        When the form isn't linear: its scores are no log-odds.
    """
    if not settings:
        return None
    if not isinstance(form, Linear):
        raise UserError("verdicts over several windows are exported of linear models alone")
    meant = verdicts_of(settings, {})

    def fixed(value: float) -> int:
        return round(value * Q16)

    return IntegerVerdicts(
        shift=form.shift,
        log_odds_most=fixed(math.log((1 - CLIP) / CLIP)),
        gain=fixed(meant.temperature * meant.slope),
        offset=fixed(meant.temperature * meant.offset),
        decay=fixed(meant.decay),
        limit=fixed(meant.limit),
        bound=fixed(meant.most),
    )


def verdict_files(source: Source) -> dict[str, str]:
    """``<identifier>_verdict.h``, if the model's verdicts travel."""
    verdicts = integer_verdicts(source.verdicts, source.form)
    if verdicts is None:
        return {}
    text = render("sbd_verdict.h.j2", source=source, verdicts=verdicts)
    return {f"{source.identifier}_verdict.h": text}
