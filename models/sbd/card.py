"""The model card, generated from the same numbers as every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.sbd.results.accuracy import RuleRow, SiteRow

PAPER = (
    ("SmartSBD (DT), the paper's data", 0.896, 0.875, 0.917),
    ("SmartSBD (RF), the paper's data", 0.919, 0.907, 0.932),
    ("SmartSBD (SVM), the paper's data", 0.937, 0.916, 0.959),
    ("SBD, the paper's data", 0.649, 0.754, 0.544),
    ("DWC, the paper's data", 0.561, 0.268, 0.855),
    ("TON20, the paper's data", 0.452, 0.266, 0.637),
)
"""smartsbd.txt Table 5, rows ALL: mean, SB, NSB."""


def interval(value: Mapping[str, Any] | None) -> str:
    """``0.957 [0.951, 0.962]``, or a dash."""
    if not value or value["mean"] is None:
        return "–"
    if value["low"] is None or value["high"] is None:
        return f"{value['mean']:.3f}"
    return f"{value['mean']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"


def others(table5: Sequence[SiteRow], rules: Sequence[RuleRow], model: str) -> list[dict[str, str]]:
    """Rows of the comparison: this model, the baseline, the rules here, the paper's figures."""
    rows = []
    for row in table5:
        if row.dataset == "ALL" and row.model in {model, "threshold"}:
            rows.append(_row(row.model, row))
    rows += [_row(f"{row.rule} (rule)", row) for row in rules if row.dataset == "ALL"]
    for name, *values in PAPER:
        texts = [f"{value:.3f}" for value in values]
        rows.append({"name": name, "both": texts[0], "sb": texts[1], "nsb": texts[2]})
    return rows


def _row(name: str, row: SiteRow | RuleRow) -> dict[str, str]:
    texts = {"both": interval(row.both), "sb": interval(row.sb), "nsb": interval(row.nsb)}
    return {"name": name, **texts}


def render(**values: Any) -> str:
    """Fill ``card.md.j2``; every name the template uses must be given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent
    # Markdown, not HTML: escaping would spoil it.
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    return environment.get_template("card.md.j2").render(**values)
