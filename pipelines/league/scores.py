"""Value runs: power above all, and the metrics that it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelines.league.draw import Drawn
from pipelines.league.families import REFERENCE
from pipelines.league.metrics import Row
from pipelines.studies.papers.runs import Run

_DIGITS = 5


def rows(
    drawn: Sequence[Drawn],
    most: Mapping[str, float],
    runs: Mapping[tuple[str, str], Run],
    players: Sequence[str],
) -> dict[tuple[str, str], Row]:
    """Figures of every run of these players, rounded to five digits.

    Parameters
    ----------
    drawn : sequence of Drawn
    most : mapping
        Scenario -> what its bottlenecks carry (Mbit/s), as of `pipelines.league.capacity.of_all`.
    runs : mapping
        (scenario, player) -> metrics; the reference's are among them if there are neighbours.
    players : sequence of str

    Returns
    -------
    dict
        (scenario, player) -> row.
    """
    found = {}
    for one in drawn:
        reference = runs.get((one.name, REFERENCE)) if has_neighbours(one) else None
        for cc in players:
            if (one.name, cc) in runs:
                row = _row(one, runs[one.name, cc], reference, most[one.name])
                found[one.name, cc] = {k: _rounded(v) for k, v in row.items()}
    return found


def has_neighbours(drawn: Drawn) -> bool:
    """Whether measured flows of other controls are beside the tested one."""
    return any(flow.measure and (flow.cc or flow.ccs) for flow in drawn.spec.flows)


def _row(one: Drawn, run: Run, reference: Run | None, most: float) -> Row:
    own, others = _goodputs(one, run)
    ratio = run.get("rtt_ratio")
    row: Row = {
        "power": (own + others) / most / ratio if ratio else 0.0,
        "goodput": own / most,
        "rtt_ratio": ratio,
        "rtt_ms": run.get("rtt_ms"),
        "loss": run.get("loss_rate"),
        "resent": run.get("retransmit_rate"),
        "jain": run.get("jain"),
        "share": None,
        "left": None,
    }
    if reference is not None:
        expected, left = _goodputs(one, reference)
        row["share"] = own / expected if expected else None
        row["left"] = others / left if left else None
    return row


def _goodputs(one: Drawn, run: Run) -> tuple[float, float]:
    """Goodput of the flows under test and of their neighbours (Mbit/s)."""
    own = others = 0.0
    for flow in one.spec.flows:
        if not flow.measure:
            continue
        names = [flow.name] if flow.count == 1 else [f"{flow.name}{i}" for i in range(flow.count)]
        total = sum(run[f"flows.{name}"] for name in names)
        if flow.cc is None and not flow.ccs:
            own += total
        else:
            others += total
    return own, others


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")
