"""Judge whether a paper's statements hold in this project's runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.netsim.cc import CONTROLS
from data.netsim.paper import Claim, split

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from pipelines.studies.papers.runs import Results

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Verdict:
    """The judgement of a claim.

    Attributes
    ----------
    claim : Claim
    where : str
        The variant that it is about; "" if its terms name the variant or there is only one.
    verdict : str
        ``holds``, ``does not hold``, ``undecided``, or ``holds for n of m``.
    detail : str
        The numbers, or the comparisons that don't hold.
    """

    claim: Claim
    where: str
    verdict: str
    detail: str


def judge(variants: dict[str, Scenario], results: Results) -> list[Verdict]:
    """Judge all claims of a scenario.

    A comparison holds when the 95 % interval of the difference (paired by seed, Student's t) lies
    above zero, doesn't when it lies below, and is undecided between. Claims on a trained agent that
    wasn't run are left out.

    Parameters
    ----------
    variants : dict
        Label -> scenario, other readings included.
    results : dict
        Runs of the variants.
    """
    paper = next(iter(variants.values())).paper
    plain = [label for label in variants
             if not any(label.endswith(name) for name in paper.readings)]  # fmt: skip
    found = []
    for claim in paper.claims:
        everywhere = len(plain) > 1 and not any("@" in term for term in claim.named())
        for label in plain if everywhere else plain[:1]:
            terms = [split(term) for term in claim.named()]
            agents = [(at or label, cc) for cc, at in terms if cc in paper.learned]
            if all(agent in results for agent in agents):
                found.append(_judge(claim, label, everywhere, results))
    return found


def _judge(claim: Claim, label: str, everywhere: bool, results: Results) -> Verdict:
    where = label if everywhere else ""
    if claim.ratio is not None and claim.paper is not None:
        left, right = (_values(term, claim.metric, label, results) for term in claim.ratio)
        centre, low, high = _interval(left / right.mean())
        near = abs(centre - claim.paper) <= claim.within * claim.paper
        other = OPEN if low <= claim.paper <= high else FAILS
        detail = f"{centre:.3f} [{low:.3f}, {high:.3f}], paper {claim.paper:.3f}"
        return Verdict(claim, where, HOLDS if near else other, detail)
    if claim.terms:
        outcomes = {}
        for term in _spread(claim.terms, [], label, results):
            sign = 1.0 if claim.above is not None else -1.0
            bound = claim.above if claim.above is not None else claim.below
            values = _values(term, claim.metric, label, results)
            outcomes[f"{_short(term)} {_text(values)}"] = _sign(sign * (values - bound))
        return Verdict(claim, where, *_sum(outcomes, list_all=True))
    outcomes = {}
    highs = _spread(claim.higher, claim.than, label, results)
    lows = _spread(claim.than, claim.higher, label, results)
    for high_term in highs:
        for low_term in lows:
            high_values = _values(high_term, claim.metric, label, results)
            low_values = _values(low_term, claim.metric, label, results)
            text = (
                f"{_short(high_term)} {_text(high_values)}, {_short(low_term)} {_text(low_values)}"
            )
            outcomes[text] = _sign(high_values - claim.by * low_values)
    return Verdict(claim, where, *_sum(outcomes, list_all=len(outcomes) == 1))


def _spread(terms: list[str], against: list[str], label: str, results: Results) -> list[str]:
    """Write out ``*`` in terms: every classical control of that variant that ``against`` lacks."""
    written = []
    for term in terms:
        cc, at = split(term)
        if cc != "*":
            written.append(term)
            continue
        others = {split(other)[0] for other in against}
        here = [name for place, name in results if place == (at or label)]
        present = [name for name in here if name in CONTROLS]
        written += [f"{name} @ {at}" if at else name for name in present if name not in others]
    return written


def _values(term: str, metric: str, label: str, results: Results) -> Any:
    import numpy as np

    cc, at = split(term)
    runs = results[(at or label, cc)]
    return np.array([run.get(metric, np.nan) for run in runs])


def _interval(values: Any) -> tuple[float, float, float]:
    from data.netsim.runner import intervals

    found = intervals([{"x": float(v)} for v in values])["x"]
    return found["mean"], found["lo"], found["hi"]


def _sign(differences: Any) -> str:
    _, low, high = _interval(differences)
    return HOLDS if low > 0 else FAILS if high < 0 else OPEN


def _sum(outcomes: dict[str, str], list_all: bool) -> tuple[str, str]:
    """Verdict on many comparisons together, and those that don't hold (at most six)."""
    kinds = list(outcomes.values())
    rest = [text if kind == OPEN else f"not: {text}" for text, kind in outcomes.items()
            if kind != HOLDS]  # fmt: skip
    if list_all and len(outcomes) <= 6:
        detail = "; ".join(outcomes)
    else:
        detail = "; ".join(rest[:6]) + (f"; and {len(rest) - 6} more" if len(rest) > 6 else "")
    if len(set(kinds)) == 1:
        return kinds[0], detail
    return f"holds for {kinds.count(HOLDS)} of {len(kinds)}", detail


def _short(term: str) -> str:
    cc, at = split(term)
    return f"{cc} ({at})" if at else cc


def _text(values: Any) -> str:
    return f"{values.mean():.4g}"
