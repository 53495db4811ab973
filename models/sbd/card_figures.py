"""Rows of figures in the cards of shared-bottleneck models: accuracies, and others beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from models.card import Row, interval

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

PROTOCOLS = (
    ("within", "four sites, {splits} shuffle splits, trained on the sites alone"),
    ("unseen", "Table 6, unseen, trained on the sites alone"),
    ("unseen-varied", "Table 6, unseen, trained on the sites and the randomised campaign"),
    (
        "mixed",
        "randomised campaign, {splits} shuffle splits, trained on the sites and its rest",
    ),
    ("transfer", "randomised campaign, trained on the sites alone"),
    ("family", "families of conditions left out of training"),
)
"""Protocol -> what it is called in a model card."""


def accuracies(metrics: Mapping[str, Any], splits: int) -> list[Row]:
    """Accuracies of each protocol; ``splits`` where its metrics tell none."""
    return [
        (
            title.format(splits=metrics[protocol].get("splits", splits)),
            interval(metrics[protocol]["window"]),
            interval(metrics[protocol]["connection"]),
        )
        for protocol, title in PROTOCOLS
        if protocol in metrics
    ]


def others(table5: Sequence[SiteRow], rules: Sequence[RuleRow], model: str) -> list[Row]:
    """Rows of the comparison: this model, the baseline, the rules here, the paper's figures."""
    rows = []
    for row in table5:
        if row.dataset == "ALL" and row.model in {model, "threshold"}:
            rows.append(_row(row.model, row))
    rows += [_row(f"{row.rule} (rule)", row) for row in rules if row.dataset == "ALL"]
    return rows + [(name, *(f"{value:.3f}" for value in values)) for name, *values in PAPER]


def _row(name: str, row: SiteRow | RuleRow) -> Row:
    return (name, interval(row.both), interval(row.sb), interval(row.nsb))
