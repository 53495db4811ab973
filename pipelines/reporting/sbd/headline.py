"""The aims, the measurements that they are compared with, and a run's few headline numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.sbd.results.accuracy import TABLE6
from models.sbd.results.verdicts import LOFO, PLUS
from models.stats.intervals import Interval
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.sbd import names
from pipelines.reporting.sbd.general_blocks import protocols
from pipelines.reporting.sbd.paper import AIMS, UNSEEN
from pipelines.reporting.sbd.site_blocks import Accuracies, accuracies


@dataclass(frozen=True)
class Aim:
    """One aim and what was measured.

    Attributes
    ----------
    key : str
        Name in ``headline.json``; empty if the aim isn't a number of it.
    text : str
        What was aimed at.
    measured : Interval or None
        What was measured; ``None`` if its table is missing.
    of : str
        The model that was measured.
    met : bool or None
        Whether the aim is met; ``None`` if nothing was measured.
    paper : float, optional
        The paper's number.
    """

    key: str
    text: str
    measured: Interval | None
    of: str
    met: bool | None
    paper: float | None = None


def aims(inputs: Inputs) -> list[Aim]:
    """Every aim of the work, with what the tables show for it."""
    found = protocols(inputs)
    try:
        sites = accuracies(inputs)
    except MissingInput:
        sites = {}
    within = {m: row.both for (m, site), row in sites.items() if site == "ALL"}
    learned = {m: v for m, v in within.items() if m not in names.RULES and m != "threshold"}
    trees = {m: v for m, v in learned.items() if m in {"smartsbd-dt", "smartsbd-dt-all"}}
    lofo = inputs.optional(LOFO)
    nested = lofo.nested if lofo else None
    listed = [
        _at_least(
            "best_within",
            f"Best classifier on the four sites ≥ {AIMS['within']}",
            _best(learned),
            AIMS["within"],
            AIMS["within"],
        ),
        _at_least(
            "tree_within",
            f"Decision tree of depth ≤ 10 on the four sites ≥ {AIMS['tree']:.2f}",
            _best(trees),
            AIMS["tree"],
            0.896,
        ),
        _above_rules(learned, sites),
    ]
    for key, protocol, trained in (
        ("unseen_18", "unseen", "trained on the sites alone"),
        ("unseen_18_varied", "unseen-varied", "trained on sites and randomised campaign"),
    ):
        rows = {m: r.window for m, r in found[protocol].items() if names.is_paper(m)}
        text = f"Unseen cases with the 18 features ≥ {AIMS['unseen']:.2f}, {trained}"
        listed.append(_at_least(key, text, _best(rows), AIMS["unseen"], UNSEEN))
    for key, measured, text in (
        ("plus_window", nested and nested.window, "per window"),
        ("plus_connection", nested and nested.connection, "per connection"),
    ):
        best = _best({"smartsbd-plus": measured} if measured else {})
        title = f"smartsbd-plus on families never trained on ≥ {AIMS[key]} {text}"
        listed.append(_at_least(key, title, best, AIMS[key]))
    return listed


def numbers(inputs: Inputs) -> dict[str, float | int]:
    """Content of ``headline.json``, flat: fewer than ten numbers, without those not measured."""
    found: dict[str, float | int] = {}
    try:
        frame = inputs.features
        found["connections"] = frame.select("source", "connection").n_unique()
        found["windows"] = frame.height
    except MissingInput:
        pass
    for aim in aims(inputs):
        if aim.key and aim.measured and aim.measured["mean"] is not None:
            found[aim.key] = round(aim.measured["mean"], 4)
    return found


def shortfalls(inputs: Inputs, unmet: list[Aim]) -> list[str]:
    """Explain from the tables, for each aim that isn't met, where accuracy is lost."""
    keys = {aim.key for aim in unmet}
    texts = []
    if keys & {"unseen_18", "unseen_18_varied"}:
        cases = inputs.optional(TABLE6)
        for key, protocol, listed in (
            ("unseen_18", "unseen", cases.unseen if cases else ()),
            ("unseen_18_varied", "unseen-varied", cases.unseen_varied if cases else ()),
        ):
            model = next((a.of for a in unmet if a.key == key), None)
            rows = [(r.value, r.window) for r in listed if r.model == model]
            if model and rows:
                texts.append(_worst(rows, model, f"Unseen cases ({protocol})"))
    if keys & {"plus_window", "plus_connection"}:
        lofo, choice = inputs.optional(LOFO), inputs.optional(PLUS)
        if lofo and choice:
            rows = [(r.value, r.window) for r in lofo.families if r.model == choice.chosen]
            if rows:
                texts.append(_worst(rows, choice.chosen, "Families left out"))
    if keys & {"best_within", "tree_within"}:
        try:
            sites = accuracies(inputs)
        except MissingInput:
            sites = {}
        for aim in unmet:
            if aim.key in {"best_within", "tree_within"} and aim.of:
                rows = [(site, row.both) for (model, site), row in sites.items() if model == aim.of]
                texts.append(_worst(rows, aim.of, "Four sites"))
    return texts


def explanations(inputs: Inputs) -> list[tuple[str, str]]:
    """Headings and texts of ``docs/deviations.md`` that explain why a number falls short."""
    path = inputs.root / "docs" / "deviations.md"
    if not path.is_file():
        return []
    parts = re.split(r"^#{2,3} +", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = []
    for part in parts:
        title, _, body = part.partition("\n")
        if re.search(r"\b(short|why)\b", title, flags=re.IGNORECASE):
            found.append((title.strip(), body.strip()))
    return found


def _best(rows: Mapping[str, Interval]) -> tuple[str, Interval] | None:
    known = [(m, v) for m, v in rows.items() if v["mean"] is not None]
    return max(known, key=lambda item: _mean(item[1]), default=None)


def _mean(value: Interval) -> float:
    return -math.inf if value["mean"] is None else value["mean"]


def _at_least(
    key: str,
    text: str,
    best: tuple[str, Interval] | None,
    limit: float,
    paper: float | None = None,
) -> Aim:
    if best is None:
        return Aim(key, text, None, "", None, paper)
    name, measured = best
    return Aim(key, text, measured, name, _mean(measured) >= limit, paper)


def _above_rules(learned: Mapping[str, Interval], sites: Accuracies) -> Aim:
    text = "Every learned classifier above every rule-based one on the four sites"
    rules = {
        rule: max((row.both, row.window or row.both), key=_mean)
        for (rule, site), row in sites.items()
        if site == "ALL" and rule in names.RULES
    }
    known = {m: _mean(v) for m, v in learned.items() if v["mean"] is not None}
    best = _best(rules)
    if not known or best is None:
        return Aim("best_rule", text, None, "", None, 0.649)
    worst = min(known, key=lambda m: known[m])
    of = f"best rule: {names.scheme(best[0])}; lowest learned: {names.scheme(worst)}, "
    met = known[worst] > _mean(best[1])
    return Aim("best_rule", text, best[1], of + f"{known[worst]:.3f}", met, 0.649)


def _worst(rows: Sequence[tuple[str, Interval]], model: str, what: str) -> str:
    """The lowest three of (name, accuracy), and the span of the others."""
    known = [(name, _mean(v)) for name, v in rows if name != "ALL" and v["mean"] is not None]
    known.sort(key=lambda one: one[1])
    lowest = ", ".join(f"{name} {mean:.3f}" for name, mean in known[:3])
    rest = [mean for _, mean in known[3:]]
    tail = f"; the other {len(rest)} have {min(rest):.3f} to {max(rest):.3f}" if rest else ""
    return f"{what}, {names.scheme(model)}: lowest are {lowest}{tail}."
