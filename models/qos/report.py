"""What the report shows of the network: structures and discretisations on held-out sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.judged import Block, Figure
from models.qos.results import QOS

Row = tuple[Figure | str | float | int | None, ...]

if TYPE_CHECKING:
    from models.stats.intervals import Interval


def blocks(root: Path) -> Sequence[Block]:
    """Tables of the report, as far as they have been made."""
    path = root / "reports" / "qos" / QOS.name
    if not path.is_file():
        return []
    found = QOS.read_at(path)

    def figure(value: Interval) -> Figure:
        return Figure(**value, count=found.held_out, of="sessions")

    qualities = list(found.structures[0].errors)
    structures: list[Row] = [
        (
            *(row.name, row.edges, row.parameters, figure(row.log_likelihood), figure(row.more)),
            *(row.errors[one] for one in qualities),
            *(row.accuracies[one] for one in qualities),
        )
        for row in found.structures
    ]
    discretisers = [
        (row.name, row.values, figure(row.log_likelihood), figure(row.more))
        for row in found.discretisers
    ]
    heads = ("structure", "arrows", "numbers", "log-likelihood", "more than the paper's")
    errors = [f"calibration error of {one}" for one in qualities]
    right = [f"accuracy of {one}" for one in qualities]
    return [
        Block(
            "Structures of the network, on held-out sessions",
            f"{found.sessions} simulated sessions, {found.held_out} held out; nats per session.",
            (*heads, *errors, *right),
            structures,
        ),
        Block(
            "Discretisations, on held-out sessions",
            "Log-likelihood of the same grid of 64 cells a variable, with the paper's structure.",
            ("discretisation", "values", "log-likelihood", "more than Gaussians"),
            discretisers,
        ),
    ]
