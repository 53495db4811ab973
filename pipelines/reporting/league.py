"""Show how congestion controls rank in the league, as its page beside the documents has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import Column, Html, figure, paragraph, stacked, table

if TYPE_CHECKING:
    from pipelines.league.kept import Figures
    from pipelines.league.standings import Estimate

SHOWN = ("goodput", "rtt_ratio", "loss", "resent")
"""Metrics beside power."""


def standings(inputs: Inputs) -> str:
    """A table for each standing, with what was played above."""
    from pipelines.league.families import STANDINGS
    from pipelines.league.metrics import METRICS
    from pipelines.league.standings import rankings

    found = _figures(inputs)
    ranking = rankings(found.played, found.rows)
    scenarios = sum(map(len, found.played.values()))
    made = paragraph(
        f"{len({cc for _, cc in found.rows})} congestion controls in {scenarios} scenarios of "
        f"{len(found.played)} families (digest of the list {found.header.digest[:16]}), ranked by "
        "power: the share of the most goodput that they got, over the mean RTT relative to that "
        "of the idle path. Interquartile means over scenarios with 95 % intervals of a bootstrap "
        "within each family; worst is the least power. docs/league.md has every family, what is "
        "left to CUBIC, and the definitions."
    )
    columns = [
        Column("control", number=False),
        Column("power"),
        Column("wins"),
        Column("first is better"),
        Column("worst"),
        *(Column(METRICS[name].title) for name in SHOWN),
    ]
    for standing, title in STANDINGS.items():
        rows: list[list[Any]] = []
        for place in ranking.get(standing, ()):
            metrics = [_cell(place.metrics.get(name), METRICS[name].shown) for name in SHOWN]
            beside = [_cell(place.power), _cell(place.wins), _cell(place.behind)]
            rows.append([place.cc, *beside, f"{place.worst:.2f}", *metrics])
        made += table(columns, rows, f"Controls on {title}, best first") if rows else ""
    return made


def drawings(inputs: Inputs) -> str:
    """The league's figures."""
    from pipelines.league import figures as pictures
    from pipelines.league.standings import rankings

    found = _figures(inputs)
    drawn = pictures.drawn(found, rankings(found.played, found.rows), standalone=False)
    return "".join(figure(svg, caption, wide=True) for svg, caption in drawn.values())


def _figures(inputs: Inputs) -> Figures:
    from data.errors import UserError
    from pipelines.league import kept

    folder = inputs.root / kept.FOLDER
    if not (folder / kept.RUNS).is_file():
        raise MissingInput(folder / kept.RUNS, kept.COMMAND)
    try:
        return kept.read(folder)
    except UserError as error:
        raise MissingInput(folder, kept.COMMAND, str(error)) from None


def _cell(value: Estimate | None, scale: float = 1.0) -> str | Html:
    if value is None:
        return ""
    middle = f"{scale * value.value:.2f}"
    if value.low is None or value.high is None:
        return middle
    return stacked(middle, f"{scale * value.low:.2f}–{scale * value.high:.2f}")
