"""Section "the paper's experiment": Table 5's and Fig. 7(c)'s counterparts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.sbd.results.accuracy import RULES, TABLE5, TABLE6, RuleRow, SiteRow
from models.stats.intervals import Interval
from pipelines.reporting import figures
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, details, figure, interval, paragraph, table
from pipelines.reporting.sbd import automl_rows, names
from pipelines.reporting.sbd.paper import SITES, UNSEEN
from pipelines.reporting.sbd.paper import TABLE5 as PAPER


@dataclass(frozen=True)
class Accuracy:
    """Accuracies of a scheme at one site, or at all of them.

    ``both``, ``sb`` and ``nsb`` are per window; for rules they are shares of time, and ``window``
    is the accuracy of the verdict that most of a window's time goes to.
    """

    both: Interval
    sb: Interval
    nsb: Interval
    connection: Interval
    window: Interval | None = None

    @classmethod
    def of(cls, row: SiteRow | RuleRow) -> Accuracy:
        """The accuracies of a row of a table."""
        window = row.window if isinstance(row, RuleRow) else None
        return cls(row.both, row.sb, row.nsb, row.connection, window)


Accuracies = dict[tuple[str, str], Accuracy]

NOTHING = Interval(mean=None, low=None, high=None)
FIGURE_MODELS = ("smartsbd-dt", "smartsbd-rf", "smartsbd-svm", "smartsbd-plus-lr", "threshold")


def accuracies(inputs: Inputs) -> Accuracies:
    """Accuracies of learned and rule-based schemes at the sites.

    Returns
    -------
    dict
        Pair (scheme, site or ALL) -> `Accuracy`.
    """
    found: Accuracies = {}
    for row in (*inputs.table(TABLE5), *automl_rows.kept(inputs).rows):
        found[row.model, row.dataset] = Accuracy.of(row)
    rules: dict[str, list[RuleRow]] = {}
    for rule_row in inputs.optional(RULES) or ():
        if rule_row.dataset in SITES:
            found[rule_row.rule, rule_row.dataset] = Accuracy.of(rule_row)
            rules.setdefault(rule_row.rule, []).append(rule_row)
    for rule, rows in rules.items():
        # Their table pools all data sets; beside Table 5 only the four sites may stand.
        weights = [row.windows for row in rows]
        found[rule, "ALL"] = Accuracy(
            both=pooled([row.both for row in rows], weights),
            sb=pooled([row.sb for row in rows], weights),
            nsb=pooled([row.nsb for row in rows], weights),
            connection=pooled([row.connection for row in rows], weights),
            window=pooled([row.window for row in rows], weights),
        )
    return found


def pooled(parts: Sequence[Interval], weights: Sequence[int]) -> Interval:
    """Mean over independent groups with its interval (half-widths add in squares).

    Parameters
    ----------
    parts : sequence of intervals
        Interval of each group, with ``mean``, ``low`` and ``high``.
    weights : sequence of int
        Windows of each group.
    """
    pairs = list(zip(parts, weights, strict=True))
    means = [(p["mean"], w) for p, w in pairs if p["mean"] is not None]
    total = sum(w for _, w in means)
    if not total:
        return Interval(mean=None, low=None, high=None)
    mean = sum(one * w for one, w in means) / total
    limits = [
        (p["low"], p["high"], w)
        for p, w in pairs
        if p["mean"] is not None and p["low"] is not None and p["high"] is not None
    ]
    if len(limits) < len(means):
        return Interval(mean=mean, low=None, high=None)
    half = math.sqrt(sum(((high - low) / 2 * w / total) ** 2 for low, high, w in limits))
    return Interval(mean=mean, low=max(0.0, mean - half), high=min(1.0, mean + half))


def overview(inputs: Inputs) -> str:
    """Table of every scheme's accuracy on both classes per site, over the paper's number."""
    found = accuracies(inputs)
    sites = [s for s in names.datasets({site for _, site in found}) if s != "ALL"] + ["ALL"]
    rows: list[list[Any]] = []
    for heading, schemes in _groups(found):
        rows.append([heading])
        for scheme in schemes:
            row: list[Any] = [names.scheme(scheme)]
            for site in sites:
                ours = found.get((scheme, site))
                paper = PAPER.get((scheme, site), {}).get("both")
                row.append(interval(ours.both if ours else None, paper))
            rows.append(row)
    columns = [Column("scheme", number=False), *(Column(names.dataset(s)) for s in sites)]
    summary = paragraph(
        "Stratified shuffle splits of 90/10 by connection: no connection has windows on both "
        "sides. Means over windows of both classes with 95 % intervals (learned: over splits, "
        "corrected for the overlap of training sets; rules: bootstrap over connections; their "
        "figure is the share of time in the right state, as the paper counts)."
    )
    listed = table(columns, rows, "Accuracy of both classes per site (Table 5)")
    return summary + listed + automl_rows.spent(inputs)


def classes(inputs: Inputs) -> str:
    """Table of every site and class in full."""
    found = accuracies(inputs)
    sites = ["ALL", *(s for s in names.datasets({site for _, site in found}) if s != "ALL")]
    text = ""
    for site in sites:
        rows: list[list[Any]] = []
        for _, schemes in _groups(found):
            for scheme in schemes:
                one = found.get((scheme, site))
                paper = PAPER.get((scheme, site), {})
                if one is None and not paper:
                    continue
                ours = (one.both, one.sb, one.nsb) if one else (None, None, None)
                theirs = (paper.get(key) for key in ("both", "sb", "nsb"))
                rows.append(
                    [
                        names.scheme(scheme),
                        *(interval(a, b) for a, b in zip(ours, theirs, strict=True)),
                        one.window if one else None,
                        one.connection if one else None,
                    ]
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
    """Counterpart of the paper's Fig. 7(c): accuracy per unseen case."""
    from matplotlib import pyplot

    listed = [r for r in inputs.table(TABLE6).unseen if r.value != "ALL"]
    if not listed:
        return paragraph("No unseen cases were evaluated.")
    cases = sorted({r.value for r in listed})
    have = {r.model for r in listed}
    models = [m for m in FIGURE_MODELS if m in have] or sorted(have)
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(9.6, 3.2))
        width = 0.8 / len(models)
        for i, model in enumerate(models):
            by = {r.value: r.window for r in listed if r.model == model}
            at = [j - 0.4 + width * (i + 0.5) for j in range(len(cases))]
            shown = [by.get(c, NOTHING) for c in cases]
            means = [math.nan if one["mean"] is None else one["mean"] for one in shown]
            limits = [
                [m - (one["low"] or m) for m, one in zip(means, shown, strict=True)],
                [(one["high"] or m) - m for m, one in zip(means, shown, strict=True)],
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
    """Table of the mean over the unseen cases, by the data that was trained on."""
    tables = inputs.table(TABLE6)
    by = [
        {r.model: (r.window, r.connection) for r in listed if r.value == "ALL"}
        for listed in (tables.unseen, tables.unseen_varied)
    ]
    models = names.order({model for found in by for model in found})
    rows = [
        [names.scheme(model), *(one for found in by for one in found.get(model, (None, None)))]
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
