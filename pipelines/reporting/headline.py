"""The aims, what was measured against them, and the few numbers that stand for a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pipelines.reporting import names
from pipelines.reporting.general_blocks import protocols
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.paper import AIMS, UNSEEN
from pipelines.reporting.site_blocks import accuracies


@dataclass(frozen=True)
class Aim:
    """One aim and what was measured.

    Attributes
    ----------
    key : str
        Name in ``headline.json``; empty where the aim isn't a number of it.
    text : str
        What was aimed at.
    measured : mapping or None
        Interval of what was measured; ``None`` where its table is missing.
    of : str
        Which model it was.
    met : bool or None
        ``None`` where nothing was measured.
    paper : float, optional
        The paper's number.
    """

    key: str
    text: str
    measured: dict[str, Any] | None
    of: str
    met: bool | None
    paper: float | None = None


def aims(inputs: Inputs) -> list[Aim]:
    """Every aim of the work, measured from the tables, not from anyone's word."""
    found = protocols(inputs)
    try:
        sites = accuracies(inputs)
    except MissingInput:
        sites = {}
    within = {m: row["both"] for (m, site), row in sites.items() if site == "ALL"}
    learned = {m: v for m, v in within.items() if m not in names.RULES and m != "threshold"}
    trees = {m: v for m, v in learned.items() if m in {"smartsbd-dt", "smartsbd-dt-all"}}
    lofo = (inputs.optional("lofo.json") or {}).get("nested") or {}
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
        rows = {m: r["window"] for m, r in found[protocol].items() if names.is_paper(m)}
        text = f"Unseen cases with the 18 features ≥ {AIMS['unseen']:.2f}, {trained}"
        listed.append(_at_least(key, text, _best(rows), AIMS["unseen"], UNSEEN))
    for key, part, text in (
        ("plus_window", "window", "per window"),
        ("plus_connection", "connection", "per connection"),
    ):
        best = ("smartsbd-plus", lofo[part]) if lofo.get(part) else None
        title = f"smartsbd-plus on families never trained on ≥ {AIMS[key]} {text}"
        listed.append(_at_least(key, title, best, AIMS[key]))
    return listed


def numbers(inputs: Inputs) -> dict[str, float | int]:
    """The flat ``headline.json``: fewer than ten numbers; what wasn't measured is left out."""
    found: dict[str, float | int] = {}
    try:
        frame = inputs.features
        found["connections"] = frame.select("source", "connection").n_unique()
        found["windows"] = frame.height
    except MissingInput:
        pass
    for aim in aims(inputs):
        if aim.key and aim.measured and aim.measured.get("mean") is not None:
            found[aim.key] = round(float(aim.measured["mean"]), 4)
    return found


def shortfalls(inputs: Inputs, unmet: list[Aim]) -> list[str]:
    """For each aim that isn't met, where the accuracy is lost, from the tables."""
    keys = {aim.key for aim in unmet}
    texts = []
    if keys & {"unseen_18", "unseen_18_varied"}:
        cases = inputs.optional("table6.json") or {}
        for key, protocol in (("unseen_18", "unseen"), ("unseen_18_varied", "unseen-varied")):
            model = next((a.of for a in unmet if a.key == key), None)
            rows = [r for r in cases.get(protocol, []) if r["model"] == model]
            if model and rows:
                texts.append(_worst(rows, "case", model, f"Unseen cases ({protocol})"))
    if keys & {"plus_window", "plus_connection"}:
        lofo = inputs.optional("lofo.json") or {}
        chosen = str((inputs.optional("plus.json") or {}).get("chosen"))
        rows = [r for r in lofo.get("families", []) if r["model"] == chosen]
        if rows:
            texts.append(_worst(rows, "family", chosen, "Families left out"))
    if keys & {"best_within", "tree_within"}:
        try:
            sites = accuracies(inputs)
        except MissingInput:
            sites = {}
        for aim in unmet:
            if aim.key in {"best_within", "tree_within"} and aim.of:
                rows = [
                    {"site": site, "window": row["both"]}
                    for (model, site), row in sites.items()
                    if model == aim.of
                ]
                texts.append(_worst(rows, "site", aim.of, "Four sites"))
    return texts


def explanations(inputs: Inputs) -> list[tuple[str, str]]:
    """Headings and texts of ``docs/deviations.md`` that tell why a number falls short."""
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


def _best(rows: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    known = {m: v for m, v in rows.items() if v and v.get("mean") is not None}
    return max(known.items(), key=lambda item: item[1]["mean"], default=None)


def _at_least(
    key: str,
    text: str,
    best: tuple[str, dict[str, Any]] | None,
    limit: float,
    paper: float | None = None,
) -> Aim:
    if best is None:
        return Aim(key, text, None, "", None, paper)
    name, measured = best
    return Aim(key, text, measured, name, measured["mean"] >= limit, paper)


def _above_rules(learned: dict[str, Any], sites: dict[tuple[str, str], Any]) -> Aim:
    text = "Every learned classifier above every rule-based one on the four sites"
    rules = {
        rule: max(
            (row[k] for k in ("both", "window") if row.get(k) and row[k]["mean"] is not None),
            key=lambda v: float(v["mean"]),
            default=None,
        )
        for (rule, site), row in sites.items()
        if site == "ALL" and rule in names.RULES
    }
    known = {m: v for m, v in learned.items() if v.get("mean") is not None}
    best = _best(rules)
    if not known or best is None:
        return Aim("best_rule", text, None, "", None, 0.649)
    worst = min(known, key=lambda m: float(known[m]["mean"]))
    met = known[worst]["mean"] > best[1]["mean"]
    of = f"best rule: {names.scheme(best[0])}; lowest learned: {names.scheme(worst)}, "
    return Aim("best_rule", text, best[1], of + f"{known[worst]['mean']:.3f}", met, 0.649)


def _worst(rows: list[dict[str, Any]], key: str, model: str, what: str) -> str:
    known = [r for r in rows if r[key] != "ALL" and r["window"].get("mean") is not None]
    known.sort(key=lambda r: float(r["window"]["mean"]))
    lowest = ", ".join(f"{r[key]} {r['window']['mean']:.3f}" for r in known[:3])
    rest = [float(r["window"]["mean"]) for r in known[3:]]
    tail = f"; the other {len(rest)} have {min(rest):.3f} to {max(rest):.3f}" if rest else ""
    return f"{what}, {names.scheme(model)}: lowest are {lowest}{tail}."
