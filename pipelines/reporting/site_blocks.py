"""Section "the paper's experiment": Table 5's and Fig. 7(c)'s counterparts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.reporting import automl_rows, figures, names
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, details, figure, interval, paragraph, table
from pipelines.reporting.paper import SITES, TABLE5, UNSEEN

Interval = Mapping[str, Any]
Accuracies = dict[tuple[str, str], dict[str, Any]]

FIGURE_MODELS = ("smartsbd-dt", "smartsbd-rf", "smartsbd-svm", "smartsbd-plus-lr", "threshold")


def accuracies(inputs: Inputs) -> Accuracies:
    """Learned and rule-based schemes: (scheme, site or ALL) -> intervals by class.

    Returns
    -------
    dict
        Keys of the values: ``both``, ``sb``, ``nsb``, ``connection`` and, for rules, ``window``
        (accuracy of the verdict that most of a window's time goes to).
    """
    found: Accuracies = {}
    for row in inputs.table("table5.json"):
        found[row["model"], row["dataset"]] = row
    for row in automl_rows.kept(inputs)["rows"]:
        found[row["model"], row["dataset"]] = row
    rules: dict[str, list[dict[str, Any]]] = {}
    for row in inputs.optional("rules.json") or []:
        if row["dataset"] in SITES:
            found[row["rule"], row["dataset"]] = row
            rules.setdefault(row["rule"], []).append(row)
    for rule, rows in rules.items():
        # Their table pools all data sets; beside Table 5 only the four sites may stand.
        found[rule, "ALL"] = {
            key: pooled([row[key] for row in rows], [row["windows"] for row in rows])
            for key in ("both", "sb", "nsb", "window", "connection")
        }
    return found


def pooled(parts: Sequence[Interval], weights: Sequence[int]) -> dict[str, float | None]:
    """Mean over independent groups with its interval (half-widths add in squares).

    Parameters
    ----------
    parts : sequence of intervals
        ``mean``, ``low``, ``high`` per group.
    weights : sequence of int
        Windows per group.
    """
    known = [(p, w) for p, w in zip(parts, weights, strict=True) if p.get("mean") is not None]
    total = sum(w for _, w in known)
    if not total:
        return {"mean": None, "low": None, "high": None}
    mean = sum(p["mean"] * w for p, w in known) / total
    if any(p.get("low") is None or p.get("high") is None for p, _ in known):
        return {"mean": mean, "low": None, "high": None}
    half = math.sqrt(sum(((p["high"] - p["low"]) / 2 * w / total) ** 2 for p, w in known))
    return {"mean": mean, "low": max(0.0, mean - half), "high": min(1.0, mean + half)}


def overview(inputs: Inputs) -> str:
    """Accuracy of both classes per site, every scheme, the paper's number beneath."""
    found = accuracies(inputs)
    sites = [s for s in names.datasets({site for _, site in found}) if s != "ALL"] + ["ALL"]
    rows: list[list[Any]] = []
    for heading, schemes in _groups(found):
        rows.append([heading])
        for scheme in schemes:
            row: list[Any] = [names.scheme(scheme)]
            for site in sites:
                ours = found.get((scheme, site), {}).get("both")
                paper = TABLE5.get((scheme, site), {}).get("both")
                row.append(interval(ours, paper))
            rows.append(row)
    columns = [Column("scheme", number=False), *(Column(names.dataset(s)) for s in sites)]
    told = paragraph(
        "Stratified shuffle splits of 90/10 by connection: no connection has windows on both "
        "sides. Means over windows of both classes with 95 % intervals (learned: over splits, "
        "corrected for the overlap of training sets; rules: bootstrap over connections; their "
        "figure is the share of time in the right state, as the paper counts)."
    )
    listed = table(columns, rows, "Accuracy of both classes per site (Table 5)")
    return told + listed + automl_rows.spent(inputs)


def classes(inputs: Inputs) -> str:
    """Every site and class in full."""
    found = accuracies(inputs)
    sites = ["ALL", *(s for s in names.datasets({site for _, site in found}) if s != "ALL")]
    text = ""
    for site in sites:
        rows: list[list[Any]] = []
        for _, schemes in _groups(found):
            for scheme in schemes:
                one = found.get((scheme, site), {})
                paper = TABLE5.get((scheme, site), {})
                if not one and not paper:
                    continue
                figures_ = [interval(one.get(k), paper.get(k)) for k in ("both", "sb", "nsb")]
                rows.append(
                    [names.scheme(scheme), *figures_, one.get("window"), one.get("connection")]
                )
        columns = [
            Column("scheme", number=False),
            Column("both"),
            Column("SB"),
            Column("NSB"),
            Column("verdict per window"),
            Column("per connection"),
        ]
        text += details(f"{names.dataset(site)}: both classes, SB, NSB", table(columns, rows))
    return text


def unseen(inputs: Inputs) -> str:
    """Fig. 7(c)'s counterpart: accuracy per unseen case."""
    from matplotlib import pyplot

    listed = [r for r in inputs.table("table6.json").get("unseen", []) if r["case"] != "ALL"]
    if not listed:
        return paragraph("No unseen cases were evaluated.")
    cases = sorted({r["case"] for r in listed})
    have = {r["model"] for r in listed}
    models = [m for m in FIGURE_MODELS if m in have] or sorted(have)
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(9.6, 3.2))
        width = 0.8 / len(models)
        for i, model in enumerate(models):
            by = {r["case"]: r["window"] for r in listed if r["model"] == model}
            at = [j - 0.4 + width * (i + 0.5) for j in range(len(cases))]
            means = [by[c]["mean"] if c in by else math.nan for c in cases]
            limits = [
                [
                    m - (by[c]["low"] or m) if c in by else 0.0
                    for m, c in zip(means, cases, strict=True)
                ],
                [
                    (by[c]["high"] or m) - m if c in by else 0.0
                    for m, c in zip(means, cases, strict=True)
                ],
            ]
            axis.bar(at, means, width * 0.9, color=figures.COLOURS[i], label=names.scheme(model))
            axis.errorbar(at, means, limits, fmt="none", ecolor=figures.INK, elinewidth=0.8)
        axis.axhline(UNSEEN, color=figures.INK, linestyle="--", linewidth=0.9, label="paper's mean")
        axis.set_xticks(range(len(cases)), cases)
        axis.grid(axis="x", visible=False)
        axis.set_ylim(0, 1.02)
        axis.set_ylabel("accuracy per window")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
        text = figures.svg(fig, "fig7c", "Accuracy per unseen case")
    return figure(
        text,
        "Table 6's ten cases, trained on the four sites alone, with 95 % intervals (bootstrap over "
        f"connections). The paper's Fig. 7(c) has a mean of {UNSEEN} over all cases.",
        wide=True,
    )


def unseen_table(inputs: Inputs) -> str:
    """Mean over the unseen cases, by what was trained on."""
    tables = inputs.table("table6.json")
    by = {
        kind: {r["model"]: r for r in tables.get(kind, []) if r["case"] == "ALL"}
        for kind in ("unseen", "unseen-varied")
    }
    models = names.order({m for rows in by.values() for m in rows})
    rows = [
        [
            names.scheme(model),
            *(by[kind].get(model, {}).get(key) for kind in by for key in ("window", "connection")),
        ]
        for model in models
    ]
    columns = [
        Column("model", number=False),
        Column("per window", group="trained on the four sites"),
        Column("per connection", group="trained on the four sites"),
        Column("per window", group="… and the randomised campaign"),
        Column("per connection", group="… and the randomised campaign"),
    ]
    return table(columns, rows, f"All ten unseen cases (the paper: {UNSEEN})", best=(1, 2, 3, 4))


def _groups(found: Accuracies) -> list[tuple[str, list[str]]]:
    schemes = {scheme for scheme, _ in found}
    learned = names.order(s for s in schemes if s not in names.RULES and s != "threshold")
    # The paper's auto-sklearn stands there even where ours hasn't run.
    searches = [s for s in names.SEARCHES if s in schemes or s == "auto-sklearn"]
    groups = [
        ("learned, the paper's features", [*(m for m in learned if names.is_paper(m)), *searches]),
        ("learned, scale-free features", [m for m in learned if names.is_plus(m)]),
        ("rules", [s for s in ("threshold", *names.RULES) if s in schemes]),
    ]
    return [(title, members) for title, members in groups if members]
