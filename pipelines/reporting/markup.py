"""Pieces of HTML: tables with right-aligned numbers, intervals, figures, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

DASH = "–"
MANY = 8
"""A table of more columns is set in smaller type, so that it fits."""


@dataclass(frozen=True)
class Html:
    """Text that is markup already and must not be escaped."""

    text: str


@dataclass(frozen=True)
class Column:
    """A column of a table; ``group`` spans neighbours under one heading."""

    title: str
    number: bool = True
    group: str = ""


def cell(value: Any) -> str:
    """Markup of one value: numbers with three digits, intervals in small print, dash for none."""
    if value is None:
        return f'<span class="none">{DASH}</span>'
    if isinstance(value, Html):
        return value.text
    if isinstance(value, Mapping):
        return interval(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    if isinstance(value, float):
        return f"{value:.3f}"
    return escape(str(value))


def interval(value: Mapping[str, Any] | None, paper: float | None = None) -> str:
    """``mean`` with ``low–high`` beneath, and the paper's figure where it has one."""
    if not value or value.get("mean") is None:
        text = f'<span class="none">{DASH}</span>'
    else:
        text = f"{value['mean']:.3f}"
        if value.get("low") is not None and value.get("high") is not None:
            text += f'<small class="ci">{value["low"]:.3f}{DASH}{value["high"]:.3f}</small>'
    if paper is not None:
        text += f'<small class="paper">paper {paper:.3f}</small>'
    return text


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    caption: str = "",
    best: Sequence[int] = (),
) -> str:
    """A table.

    Parameters
    ----------
    columns : sequence of Column
        Headings; a first column of text stays in view while a wide table is scrolled.
    rows : sequence of sequences
        Values as `cell` takes them; a row of one value is a heading across all columns.
    caption : str
        What the table shows; markup is escaped.
    best : sequence of int
        Columns whose largest mean is set in bold.
    """
    top = {i: _largest(rows, i) for i in best}
    head = "".join(f'<th{_align(c)} scope="col">{escape(c.title)}</th>' for c in columns)
    body = []
    for row in rows:
        if len(row) == 1:
            body.append(
                f'<tr class="group"><th colspan="{len(columns)}" scope="rowgroup">'
                f"{cell(row[0])}</th></tr>"
            )
            continue
        parts = []
        for i, (column, value) in enumerate(zip(columns, row, strict=True)):
            mean = _mean(value)
            strong = ' class="n best"' if i in top and mean is not None and mean == top[i] else ""
            parts.append(f"<td{strong or _align(column)}>{cell(value)}</td>")
        body.append(f"<tr>{''.join(parts)}</tr>")
    dense = ' class="dense"' if len(columns) > MANY else ""
    described = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        # What scrolls can be reached with the keyboard too.
        f'<div class="scroll" tabindex="0"><table{dense}>{described}'
        f"<thead>{_groups(columns)}<tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def figure(svg: str, caption: str, wide: bool = False) -> str:
    """A figure with its caption (plain text)."""
    return (
        f'<figure{" class=wide" if wide else ""}><div class="scroll">{svg}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def details(title: str, content: str) -> str:
    """Content that is folded away until it is asked for."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def code(text: str) -> Html:
    """A literal."""
    return Html(f"<code>{escape(text)}</code>")


def bar(value: float, largest: float, text: str) -> Html:
    """A number with a bar behind it."""
    share = 0.0 if largest <= 0 else max(0.0, min(1.0, value / largest))
    return Html(f'<span class="bar" style="--share:{100 * share:.1f}%">{escape(text)}</span>')


def _align(column: Column) -> str:
    return ' class="n"' if column.number else ""


def _groups(columns: Sequence[Column]) -> str:
    if not any(c.group for c in columns):
        return ""
    parts: list[tuple[str, int]] = []
    for column in columns:
        if parts and column.group and parts[-1][0] == column.group:
            parts[-1] = (column.group, parts[-1][1] + 1)
        else:
            parts.append((column.group, 1))
    heads = (
        f'<th colspan="{span}"{" class=over" if name else ""}>{escape(name)}</th>'
        for name, span in parts
    )
    return f"<tr>{''.join(heads)}</tr>"


def _mean(value: Any) -> float | None:
    if isinstance(value, Mapping):
        mean = value.get("mean")
        return None if mean is None else round(float(mean), 3)
    return round(value, 3) if isinstance(value, float) else None


def _largest(rows: Sequence[Sequence[Any]], i: int) -> float | None:
    means = [mean for row in rows if len(row) > i and (mean := _mean(row[i])) is not None]
    return max(means, default=None)
