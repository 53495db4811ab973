"""Print the headline figures of SmartSBD's training steps for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def print_summary(summary: Mapping[str, Any]) -> None:
    """Print the headline figures for people."""
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    done = summary.get("protocol")
    if done:
        view = Table("sites", "Table 6", "families", "(connections)")
        view.columns.insert(0, Column("model", no_wrap=True))
        for model, within in done["within"].items():
            left = done["family"].get(model, [None, None])
            figures = (within, done["unseen"].get(model), *left)
            view.add_row(model, *("–" if f is None else f"{f:.3f}" for f in figures))
        console.print(view)
        console.print(f"chosen for conditions not trained on: {done['chosen']}")
    if "search" in summary:
        console.print(f"top features: {', '.join(summary['search']['top'])}")
    if "fit" in summary:
        console.print(f"kept: {', '.join(summary['fit'])}")
