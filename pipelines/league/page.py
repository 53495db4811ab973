"""Write the league's page as Markdown, from its figures alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from data.netsim.cc import COUPLED
from pipelines.league.families import FAMILIES, GIVEN, STANDINGS, in_words
from pipelines.league.kept import RUNS, Figures
from pipelines.league.metrics import METRICS
from pipelines.league.standings import BESIDE, Estimate, Place


def page(
    figures: Figures,
    ranking: Mapping[str, Sequence[Place]],
    drawings: Mapping[str, tuple[str, str]],
) -> str:
    """Markdown of the whole page.

    Parameters
    ----------
    figures : Figures
    ranking : mapping
        Family or standing -> its places, best first.
    drawings : mapping
        Name -> (path relative to the page, caption).
    """
    import jinja2

    head = figures.header
    says = "; ".join(
        f"*{metric.title}*, {metric.says}" for name, metric in METRICS.items() if name != "power"
    )
    standings = [
        "\n".join([f"## {_begun(STANDINGS[name])}", "", *standing(ranking[name]), "",
                   *by_metric(ranking[name])])
        for name in STANDINGS
        if name in ranking
    ]  # fmt: skip
    families = [
        "\n".join([f"### {name}", "", f"{_described(name)}.", "", *by_family(places)])
        for name, places in ranking.items()
        if name not in STANDINGS
    ]
    pictures = [f"![{caption}]({path})\n\n*{caption}*" for path, caption in drawings.values()]
    template = Path(__file__).with_name("page.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined)
    text = environment.from_string(template).render(
        command=head.command,
        file=RUNS,
        metrics=says,
        runs=head.runs,
        cpu_s=round(head.cpu_s),
        controls=len({cc for _, cc in figures.rows}),
        coupled=", ".join(f"`{name}`" for name in COUPLED),
        scenarios=sum(map(len, figures.played.values())),
        each=head.each,
        seed=head.seed,
        digest=head.digest,
        standings="\n\n".join(standings),
        drawings="\n\n".join(pictures),
        beside=_beside_cubic(ranking),
        families="\n\n".join(families),
    )
    # A part that this league hasn't leaves empty lines.
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def standing(places: Sequence[Place]) -> list[str]:
    """Ranking by power."""
    rows = [
        [str(rank), f"`{one.cc}`", _estimate(one.power), _estimate(one.wins),
         _behind(one) if rank > 1 else "", f"{one.worst:.2f} ({one.worst_in})"]
        for rank, one in enumerate(places, 1)
    ]  # fmt: skip
    return _table(["", "control", "power", "wins", "first is better", "worst"], rows, 2)


def by_metric(places: Sequence[Place]) -> list[str]:
    """The other figures of a standing, in the ranking's order, the best of each in bold."""
    names = [name for name in METRICS if name in places[0].metrics]
    return _figures(places, names)


def by_family(places: Sequence[Place]) -> list[str]:
    """Power and all other figures of a family."""
    names = [name for name in METRICS if name in places[0].metrics]
    rows = []
    for one in places:
        values = [_shown(one, name).partition(" [")[0] for name in names]
        where = one.worst_in.removeprefix(f"{one.family}{'-' if one.family in FAMILIES else '/'}")
        worst = f"{one.worst:.2f} ({where})"
        rows.append([f"`{one.cc}`", _estimate(one.power), _estimate(one.wins), worst, *values])
    titles = [METRICS[name].title for name in names]
    return _table(["control", "power", "wins", "worst", *titles], rows, 1)


def _beside_cubic(ranking: Mapping[str, Sequence[Place]]) -> str:
    lines = ["## Beside CUBIC"]
    for name, places in ranking.items():
        names = [metric for metric in BESIDE if metric in places[0].metrics]
        if names and name not in STANDINGS:
            order = sorted(places, key=lambda one: -_value(one, "left"))
            table = "\n".join(_figures(order, names))
            lines.append(f"### {name}, by what is left to the neighbours\n\n{table}")
    return "\n\n".join(lines) if len(lines) > 1 else ""


def _figures(places: Sequence[Place], names: Sequence[str]) -> list[str]:
    best = {}
    for name in names:
        sign = 1 if METRICS[name].more else -1
        best[name] = max(sign * _value(one, name, -sign) for one in places) * sign
    rows = []
    for one in places:
        cells = [_shown(one, name) for name in names]
        marked = [
            f"**{cell}**" if _value(one, name) == best[name] else cell
            for cell, name in zip(cells, names, strict=True)
        ]
        rows.append([f"`{one.cc}`", *marked])
    return _table(["control", *(METRICS[name].title for name in names)], rows, 1)


def _value(one: Place, name: str, worst: int = -1) -> float:
    found = one.metrics.get(name)
    return worst * float("inf") if found is None else found.value


def _described(name: str) -> str:
    if name not in FAMILIES:
        return _begun(GIVEN[name])
    family = FAMILIES[name]
    return f"{_begun(family.says)}: {in_words(family)}"


def _begun(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _behind(one: Place) -> str:
    value, low, high = one.behind
    decided = low is not None and high is not None and (low > 0.5 or high < 0.5)
    text = _estimate(Estimate(value, low, high))
    return f"**{text}**" if decided else text


def _shown(one: Place, name: str) -> str:
    if name not in one.metrics:
        return ""
    scale = METRICS[name].shown
    found = [None if value is None else scale * value for value in one.metrics[name]]
    return _estimate(Estimate(found[0] or 0.0, found[1], found[2]))


def _estimate(one: Estimate | None) -> str:
    if one is None:
        return ""
    if one.low is None or one.high is None:
        return _number(one.value)
    return f"{_number(one.value)} [{_number(one.low)}, {_number(one.high)}]"


def _number(value: float) -> str:
    if value == 0:
        return "0"
    return (
        f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if value < 0.1 else f"{value:.2f}"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> list[str]:
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return ["| " + " | ".join(line) + " |" for line in (head, rule, *rows)]
