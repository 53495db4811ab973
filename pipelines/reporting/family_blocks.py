"""Draw the sections that families of models add to the report, in the style of all others."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from models.families import FAMILIES, family
from models.judged import Block, Figure
from pipelines.reporting.markup import Column, note, paragraph, strong, table

logger = logging.getLogger(__name__)


def sections(root: Path, missing: list[str]) -> list[dict[str, Any]]:
    """Make a section for each family that has anything to show.

    Parameters
    ----------
    root : Path
        Checkout that the families read their results from.
    missing : list of str
        Gets a line for each family whose results can't be read.
    """
    found = []
    for name, line in FAMILIES.items():
        try:
            blocks = [drawn(block) for block in family(name).blocks(root)]
        except Exception as error:  # one family's results must not cost the whole page
            logger.warning("report: %s: %s: %s", name, type(error).__name__, error)
            missing.append(f"{name}: {type(error).__name__}: {error}")
            blocks = [note(f"Not shown: the results of {name} could not be read.", "make repro")]
        if blocks:
            found.append({"anchor": name, "title": line.summary, "blocks": blocks})
    return found


def drawn(block: Block) -> str:
    """HTML of one block."""
    text = paragraph(block.text) if block.text else ""
    if not block.columns:
        return paragraph(strong(block.title)) + text
    columns = [Column(head, number=place > 0) for place, head in enumerate(block.columns)]
    rows = [[_cell(value) for value in row] for row in block.rows]
    return table(columns, rows, block.title) + text


def _cell(value: Figure | str | float | int | None) -> Any:
    return asdict(value) if isinstance(value, Figure) else value
