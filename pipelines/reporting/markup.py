"""Pieces of HTML: tables with right-aligned numbers, intervals, figures, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MANY = 8
"""A table of more columns than this is set in smaller type, so that it fits."""


@dataclass(frozen=True)
class Html:
    """Text that is markup already and must not be escaped."""

    text: str

    def __html__(self) -> str:
        """Return the markup to templates, which escape all other text."""
        return self.text


@dataclass(frozen=True)
class Column:
    """A column of a table; ``group`` spans neighbours under one heading."""

    title: str
    number: bool = True
    group: str = ""


def interval(value: Mapping[str, Any] | None, paper: float | None = None) -> Html:
    """``mean`` with ``low–high`` beneath, and the paper's figure if there is one."""
    return _made("interval", value, paper)


def stacked(text: str, small: str) -> Html:
    """A number with its interval beneath it, so that a table stays narrow."""
    return _made("stacked", text, small)


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    caption: str = "",
    best: Sequence[int] = (),
) -> str:
    """Make a table.

    Parameters
    ----------
    columns : sequence of Column
        Headings; a first column of text stays in view while a wide table is scrolled.
    rows : sequence of sequences
        Numbers, texts, mappings as `interval` takes them, `Html` or None; a row of one value is a
        heading across all columns.
    caption : str
        What the table shows; markup is escaped.
    best : sequence of int
        Columns whose largest mean is set in bold.
    """
    top = {i: _largest(rows, i) for i in best}

    def kind(i: int, value: Any) -> str:
        mean = _mean(value)
        if i in top and mean is not None and mean == top[i]:
            return "n best"
        return "n" if columns[i].number else ""

    for row in rows:
        if len(row) not in (1, len(columns)):
            raise ValueError(f"{len(row)} values for {len(columns)} columns")
    body = [[(kind(i, value), value) for i, value in enumerate(row)] for row in rows]
    dense = len(columns) > MANY
    return _made("table", columns, _groups(columns), body, caption, dense).text


def scroll(svg: str) -> str:
    """Put a drawing into a box of its own that scrolls."""
    return _made("scroll", svg).text


def figure(svg: str, caption: str, wide: bool = False) -> str:
    """A figure with its caption (plain text)."""
    return _made("figure", svg, caption, wide).text


def paragraph(text: str | Html) -> str:
    """A paragraph of plain text."""
    return _made("paragraph", text).text


def details(title: str, content: str) -> str:
    """Content that is folded away until it is asked for."""
    return _made("details", title, content).text


def code(text: str) -> Html:
    """Mark a text as code."""
    return _made("code", text)


def strong(text: str | Html) -> Html:
    """Mark a text as important."""
    return _made("strong", text)


def mark(kind: str, text: str) -> Html:
    """A word in the colour of its kind: met, unmet or unknown."""
    return _made("mark", kind, text)


def note(text: str, command: str) -> str:
    """Note why something isn't shown, and which command makes it."""
    return _made("note", text, command).text


def prose(text: str) -> str:
    """Turn paragraphs, lists and `code` of a Markdown text into HTML; no more is needed here."""
    blocks = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if lines and all(line.startswith(("- ", "  ")) for line in lines):
            blocks.append(("ul", [item.split("`") for item in block.strip()[2:].split("\n- ")]))
        elif lines:
            blocks.append(("p", [" ".join(lines).split("`")]))
    return _made("prose", blocks).text


def bar(value: float, largest: float, text: str) -> Html:
    """A number with a bar behind it."""
    share = 0.0 if largest <= 0 else max(0.0, min(1.0, value / largest))
    return _made("bar", share, text)


def _made(macro: str, *given: Any) -> Html:
    return Html(str(getattr(_macros(), macro)(*given)))


@cache
def _macros() -> Any:
    import jinja2

    text = Path(__file__).with_name("markup.html.j2").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True).from_string(text).module


def _groups(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Headings over several columns, with how many columns each spans; empty if there are none."""
    if not any(c.group for c in columns):
        return []
    parts: list[tuple[str, int]] = []
    for column in columns:
        if parts and column.group and parts[-1][0] == column.group:
            parts[-1] = (column.group, parts[-1][1] + 1)
        else:
            parts.append((column.group, 1))
    return parts


def _mean(value: Any) -> float | None:
    if isinstance(value, Mapping):
        mean = value.get("mean")
        return None if mean is None else round(float(mean), 3)
    return round(value, 3) if isinstance(value, float) else None


def _largest(rows: Sequence[Sequence[Any]], i: int) -> float | None:
    means = [mean for row in rows if len(row) > i and (mean := _mean(row[i])) is not None]
    return max(means, default=None)
