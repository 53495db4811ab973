"""Section "other conditions": families never trained on, "don't know", delay, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from models.sbd.results.accuracy import MIXED, TABLE5, TABLE6, TRANSFER
from models.sbd.results.scores import CONFUSION, DELAY, Quantiles
from models.sbd.results.verdicts import CALIBRATION, LOFO, PLUS
from models.stats.intervals import Interval
from pipelines.reporting import figures
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, details, figure, paragraph, table
from pipelines.reporting.sbd import names

_KINDS = ("window", "connection")


class Accuracy(NamedTuple):
    """A model's accuracies under one protocol."""

    window: Interval
    connection: Interval


def protocols(inputs: Inputs) -> dict[str, dict[str, Accuracy]]:
    """Protocol -> model -> its accuracies over all rows."""
    found: dict[str, dict[str, Accuracy]] = {}
    for protocol, file in (("within", TABLE5), ("mixed", MIXED)):
        found[protocol] = {
            r.model: Accuracy(r.both, r.connection)
            for r in inputs.optional(file) or ()
            if r.dataset == "ALL"
        }
    cases, lofo = inputs.optional(TABLE6), inputs.optional(LOFO)
    listed = {
        "unseen": cases.unseen if cases else (),
        "unseen-varied": cases.unseen_varied if cases else (),
        "transfer": inputs.optional(TRANSFER) or (),
        "family": lofo.families if lofo else (),
    }
    for protocol, rows in listed.items():
        found[protocol] = {
            r.model: Accuracy(r.window, r.connection) for r in rows if r.value == "ALL"
        }
    return found


def overview(inputs: Inputs) -> str:
    """Table of every model under every protocol."""
    found = protocols(inputs)
    shown = (
        ("within", "four sites, splits"),
        ("unseen", "Table 6, unseen"),
        ("family", "family left out"),
        ("mixed", "randomised, splits"),
        ("transfer", "randomised, unseen"),
    )
    models = names.order({m for rows in found.values() for m in rows})
    if not models:
        inputs.table(TABLE5)
    rows: list[list[Any]] = [
        [
            names.scheme(model),
            *(one for p, _ in shown for one in found[p].get(model, (None, None))),
        ]
        for model in models
    ]
    lofo = inputs.optional(LOFO)
    if lofo and lofo.nested:
        nested = (lofo.nested.window, lofo.nested.connection)
        figures_ = [one for p, _ in shown for one in (nested if p == "family" else (None, None))]
        rows.append([names.scheme("smartsbd-plus"), *figures_])
    columns = [Column("model", number=False)]
    columns += [Column(c, group=title) for _, title in shown for c in _KINDS]
    return table(
        columns,
        rows,
        "Accuracy per window and per connection, 95 % intervals; bold: the best of a column",
        best=tuple(range(1, len(columns))),
    ) + paragraph(
        "Four sites: 90/10 by connection. Table 6 and “randomised, unseen”: trained on the four "
        "sites alone. Family left out: trained on the sites and on the other families of the "
        "randomised campaign; the last row also chooses its model without the family. Randomised, "
        "splits: 90/10 by connection, the sites always in training."
    )


def families(inputs: Inputs) -> str:
    """Table of the accuracy on each family when it was not trained on."""
    rows_in = inputs.table(LOFO).families
    if not rows_in:
        return paragraph("Too few families of conditions to leave one out.")
    listed = sorted({r.value for r in rows_in if r.value != "ALL"})
    by = {(r.model, r.value): r for r in rows_in}
    models = names.order({r.model for r in rows_in})
    first = [by[models[0], f] for f in [*listed, "ALL"]]
    text = ""
    for key, title in (("window", "per window"), ("connection", "per connection")):
        window = key == "window"
        rows = []
        for m in models:
            mine = [by.get((m, f)) for f in [*listed, "ALL"]]
            found = (one and (one.window if window else one.connection) for one in mine)
            rows.append([names.scheme(m), *found])
        size: list[Any] = ["windows" if window else "connections"]
        size += [one.windows if window else one.connections for one in first]
        columns = [Column("model", number=False), *(Column(f) for f in listed), Column("all")]
        made = table(
            columns,
            [*rows, size],
            f"Each family left out of training, accuracy {title}",
            best=tuple(range(1, len(columns))),
        )
        text += made if key == "window" else details("The same per connection", made)
    return text


def coverage(inputs: Inputs) -> str:
    """Figure and table of how often there is an answer, and how often it is right."""
    from matplotlib import pyplot

    nested = inputs.table(LOFO).nested
    rows_in = nested.coverage if nested else ()
    if not rows_in:
        return paragraph(
            "Too few families of conditions to settle verdicts without the one tested."
        )
    windows = [(r.window_coverage, r.window_accuracy) for r in rows_in]
    ends = [(r.connection_coverage, r.connection_accuracy) for r in rows_in]
    series = ((windows, "every window", "o"), (ends, "end of the connection", "D"))
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(6.4, 3.2))
        for i, (points, label, marker) in enumerate(series):
            known = [(a, b) for a, b in points if a is not None and b is not None]
            axis.plot(
                *zip(*known, strict=True), marker=marker, color=figures.COLOURS[i], label=label
            )
        for row in rows_in:
            if row.window_accuracy is not None:
                axis.annotate(
                    f"{row.confidence:g}",
                    (row.window_coverage, row.window_accuracy),
                    xytext=(0, -12),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7.5,
                )
        axis.margins(0.1)
        axis.set_xlabel("share answered (the rest: “don't know”)")
        axis.set_ylabel("right, of those answered")
        axis.legend(loc="lower left")
        text = figures.svg(fig, "coverage", "Accuracy against coverage")
    rows = [
        [
            r.confidence,
            r.window_coverage,
            r.window_accuracy,
            r.connection_coverage,
            r.connection_accuracy,
        ]
        for r in rows_in
    ]
    columns = [
        Column("confidence asked"),
        Column("answered", group="windows"),
        Column("right", group="windows"),
        Column("answered", group="connections"),
        Column("right", group="connections"),
    ]
    return figure(
        text,
        "Verdicts of smartsbd-plus accumulated over windows, on families never trained on; labels: "
        "the calibrated confidence asked for. Calibration, memory and choice of model were settled "
        "without the family.",
    ) + table(columns, rows, "Coverage and accuracy of verdicts")


def delay(inputs: Inputs) -> str:
    """Table of the time to a verdict per data set."""
    found = inputs.table(DELAY)
    models = _shown(inputs, found)

    def rows_of(model: str) -> list[list[Any]]:
        return [
            [
                names.dataset(one.dataset),
                one.connections,
                _seconds(one.window_s),
                _seconds(one.confident_s),
                _share(one.confident_s),
                _seconds(one.stable_s),
                _share(one.stable_s),
            ]
            for name in names.datasets(one.dataset for one in found[model])
            for one in found[model]
            if one.dataset == name
        ]

    columns = [
        Column("data set", number=False),
        Column("connections"),
        Column("window T, s"),
        Column("median (p10–p90), s", group="first confident verdict"),
        Column("reached", group="first confident verdict"),
        Column("median (p10–p90), s", group="right from here on"),
        Column("reached", group="right from here on"),
    ]
    text = paragraph(
        "Counted from the start of a connection's first window, when both subflows have just been "
        "congested; a verdict can fall at the end of each window of length T."
    )
    for i, model in enumerate(models):
        made = table(columns, rows_of(model), names.scheme(model))
        text += made if i == 0 else details(names.scheme(model), made)
    return text


def confusion(inputs: Inputs) -> str:
    """Table of windows by truth and answer."""
    found = inputs.table(CONFUSION)
    titles = {
        "within": "four sites",
        "unseen": "Table 6, unseen",
        "mixed": "randomised, shuffle splits",
        "family": "family left out",
    }
    models = _shown(inputs, found)
    rows: list[list[Any]] = []
    for model in models:
        rows.append([names.scheme(model)])
        for protocol, title in titles.items():
            one = found[model].get(protocol)
            if one is None:
                continue
            row: list[Any] = [title]
            for counted in (one.confusion.SB, one.confusion.NSB):
                total = counted.SB + counted.NSB + counted.undecided or 1
                row += [f"{n} ({100 * n / total:.1f} %)" for n in (counted.SB, counted.NSB)]
            rows.append(row)
    columns = [
        Column("tested on", number=False),
        Column("said SB", group="SB in truth"),
        Column("said NSB", group="SB in truth"),
        Column("said SB", group="NSB in truth"),
        Column("said NSB", group="NSB in truth"),
    ]
    return table(columns, rows, "Windows by truth and answer")


def calibration(inputs: Inputs) -> str:
    """Reliability diagram on families never trained on."""
    from matplotlib import pyplot

    found = inputs.table(CALIBRATION)
    if not found:
        return paragraph("Too few families of conditions to calibrate on others.")
    choice = inputs.optional(PLUS)
    chosen = choice.chosen if choice else found[0].model
    mine = {r.kind: r for r in found if r.model == chosen}
    with figures.style():
        fig, axis = pyplot.subplots(figsize=(4.6, 3.6))
        axis.plot([0, 1], [0, 1], color=figures.INK, linestyle="--", linewidth=0.8)
        for i, (kind, label) in enumerate(
            (("raw", "as trained"), ("platt", "Platt"), ("isotonic", "isotonic"))
        ):
            if kind in mine:
                bins = mine[kind].bins
                axis.plot(
                    [b.mean_probability for b in bins],
                    [b.share_sb for b in bins],
                    marker="o",
                    markersize=4,
                    color=figures.COLOURS[i],
                    label=f"{label} (ECE {mine[kind].ece:.3f})",
                )
        axis.set_xlabel("predicted probability of SB")
        axis.set_ylabel("share of SB among those windows")
        axis.legend(loc="upper left", fontsize=8)
        text = figures.svg(fig, "reliability", "Reliability diagram")
    rows = [[names.scheme(r.model), r.kind, r.ece, r.brier, r.log_loss] for r in found]
    columns = [
        Column("model", number=False),
        Column("calibration", number=False),
        Column("ECE"),
        Column("Brier"),
        Column("log loss"),
    ]
    return figure(
        text,
        f"{names.scheme(chosen)} on families never trained on, ten bins; on the dashed line a "
        "probability means what it says.",
    ) + details("Calibration of every candidate", table(columns, rows))


def _shown(inputs: Inputs, found: Mapping[str, object]) -> list[str]:
    """Names of the chosen general model, then of the paper's, as far as they are there."""
    choice = inputs.optional(PLUS)
    wanted = [choice.chosen] if choice else []
    wanted += ["smartsbd-dt", "smartsbd-rf", "smartsbd-svm", "threshold"]
    return [m for m in wanted if m in found] or names.order(found)


def _seconds(one: Quantiles | None) -> str:
    return "–" if one is None else f"{one.median:.1f} ({one.p10:.1f}–{one.p90:.1f})"


def _share(one: Quantiles | None) -> str:
    return "–" if one is None else f"{100 * one.share:.0f} %"
