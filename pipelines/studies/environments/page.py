"""Writes the table of what there is to win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data.errors import UserError
from pipelines.marked import Marks
from pipelines.studies.environments.judge import CONSTANT, Result, interval

MARKS = Marks("<!-- what there is to win: python -m pipelines.studies.environments.command -->")


def figures(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One row per policy: its return, and the difference to the best constant seed by seed."""
    constants = [result for result in results if result.kind == CONSTANT]
    best = max(constants, key=lambda result: float(result.returns.mean()))
    rows = []
    for result in results:
        mean, half = interval(result.returns)
        gain, gain_half = interval(result.returns - best.returns)
        rows.append(
            {
                "policy": result.name,
                "kind": result.kind,
                "return": mean,
                "return_half": half,
                "over_best_constant": gain,
                "over_best_constant_half": gain_half,
                "mbps": float(result.mbps.mean()),
                "rtt_ms": float(result.rtt_ms.mean()),
                "best_constant": result is best,
            }
        )
    return rows


def lines_of(problem: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One problem's lines of the table."""
    lines = []
    for row in rows:
        name = f"**{row['policy']}**" if row["best_constant"] else row["policy"]
        over = f"{row['over_best_constant']:+.3f} ± {row['over_best_constant_half']:.3f}"
        lines.append(
            f"| {problem} | {name} | {row['return']:.3f} ± {row['return_half']:.3f} | "
            f"{'' if row['best_constant'] else over} | {row['mbps']:.1f} | "
            f"{row['rtt_ms']:.1f} |"
        )
    return lines


def table(found: Mapping[str, Sequence[str]], seeds: int) -> str:
    """All problems as one Markdown table, from `lines_of` each."""
    lines = [
        f"{_head(seeds)} difference to the best",
        "constant (in bold), seed by seed.",
        "",
        "| environment | policy | return | over constant | Mbps | RTT, ms |",
        "| --- | --- | --- | --- | --- | --- |",
        *(line for problem in found.values() for line in problem),
    ]
    return "\n".join(lines) + "\n"


def _head(seeds: int) -> str:
    return f"Mean reward of a step over {seeds} episodes, 95 % interval; *over constant* is the"


def standing(page: str, wanted: Sequence[str], seeds: int, where: str) -> dict[str, list[str]]:
    """Lines that a page has of some problems, to stay as they are.

    Raises
    ------
    UserError
        When it has none of one of them, or is over another number of episodes.
    """
    made = MARKS.inside(page, where)
    if wanted and _head(seeds) not in made:
        raise UserError(
            f"{where}: its table isn't over {seeds} episodes: give --seeds as it has them, or "
            "leave --only out"
        )
    found = {name: [x for x in made.split("\n") if x.startswith(f"| {name} |")] for name in wanted}
    for name, lines in found.items():
        if not lines:
            raise UserError(f"{where}: has no row of {name!r}, which --only leaves out")
    return found


def after_table(page: str, where: str) -> str:
    """What stands below the table, which is of the classes of paths."""
    return MARKS.inside(page, where).partition("\n\n")[2].partition("\n\n")[2]
