"""``cczoo drift``: compare new logs with a model's training set, to keep it or to train anew."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError

if TYPE_CHECKING:
    from models.sbd.drift.reference import Reference
    from models.sbd.params import Params
    from models.sbd.windows import Windows
    from models.store import ZooModel

SHOWN = 5
"""Number of features printed for a group."""


def run(args: argparse.Namespace) -> int:
    """Compare and print.

    Returns
    -------
    int
        0 to keep the model, 1 to train it again; a user's mistake or too little data ends in 2.
    """
    import numpy as np

    from models.sbd.drift import compare
    from models.sbd.groups import labels
    from models.sbd.rows import load_table, tell
    from models.sbd.usable import usable
    from pipelines.output import print_json, progress
    from pipelines.params import load as load_settings
    from pipelines.sources import open_model

    if args.model.startswith("rule:"):
        raise UserError(f"--model {args.model}: a rule has no training set: give a model")
    if args.plot is not None and args.plot.suffix not in (".svg", ".png"):
        raise UserError(f"--plot {args.plot}: end it in .svg or .png")
    params = load_settings(args.params).models.sbd
    by = [name for name in (args.by or "").split(",") if name]
    model = open_model(args.model)
    names = list(model.meta.features)
    check_schema(args.features, model)
    table = load_table(args.features)
    reference = _reference(args.reference, model, params)
    for frame, where in ((table.frame, args.features), (reference.table.frame, "the reference")):
        if by:
            try:
                labels.check_columns(frame.columns, by)
            except UserError as error:
                raise UserError(f"--by, {where}: {error}") from None
    mask, dropped = usable(table, names, labelled=False)
    new = table.take(mask)
    if not len(new):
        raise UserError(
            f"{args.features}: can't tell, none of {len(table)} rows can be used: "
            f"{dropped.reasons()}"
        )
    tell(dropped, str(args.features))
    probability = model.predict_proba(new.matrix(names))
    result = {
        "model": model.meta.name,
        "rows": len(table),
        "rows_unusable": dropped.not_finite,
        "dropped": dropped.described(),
        "connections": int(np.unique(new.group).size),
        "training_connections": reference.connections,
        **compare.compare(
            reference,
            new,
            probability,
            names,
            by,
            params.drift,
            params.seed,
            progress,
            model.meta.threshold,
        ),
    }
    if args.plot is not None:
        _plot(args.plot, result, reference.table, new)
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 1 if result["verdict"] == compare.RETRAIN else 0


def check_schema(path: Path, model: ZooModel) -> None:
    """Refuse a table whose features mean something else than the model's.

    Raises
    ------
    UserError
        When features were redefined since the model was trained or since the table was made, were
        computed with other settings, or are missing from the table.
    """
    from models.sbd.computed_with import check
    from models.sbd.windows import read

    columns = set(read(path).columns)
    missing = [name for name in model.meta.features if name not in columns]
    if missing:
        raise UserError(
            f"{path}: no column {missing[0]!r}, which {model.meta.name} needs: make the table "
            "with this version's `cczoo features sbd`"
        )
    check(path, model)


def _reference(path: Path | None, model: ZooModel, params: Params) -> Reference:
    from models.sbd.drift import reference as references

    names = list(model.meta.features)
    if path is None:
        if references.FILE not in model.meta.files:
            raise UserError(
                f"{model.directory}: has no {references.FILE}: give the table that it was trained "
                "on with --reference FILE, or train it again"
            )
        where = str(model.directory / references.FILE)
        return references.loads(model.read_json(references.FILE), names, where)
    from models.sbd.evaluate.holdout import held_out_split
    from models.sbd.rows import load_table

    check_schema(path, model)
    whole = load_table(path)
    train, left_out = held_out_split(whole.take(whole.finite(names)), params.protocol)
    if not len(train):
        raise UserError(f"{path}: no row that a model learns from: is it the training table?")
    answers = None
    if len(left_out):
        probability = model.predict_proba(left_out.matrix(names))
        answers = references.answers(left_out, probability, names, model.meta.threshold)
    return references.of(train, names, answers, params.drift, params.seed)


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    # Two lines a row: on 80 columns only a long name of a group is folded, and nothing is cut.
    view = Table(
        Column("group", overflow="fold"),
        *("conn.\n(trained)", "AUC\n[95 %]", "\nnovel"),
        *("SB\nshare", "confi-\ndence", "accu-\nracy"),
        Column("\nverdict", no_wrap=True),
        box=None,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        title=f"{result['model']}: new logs against its training set (held out of it)",
    )
    for row in result["groups"]:
        auc = row["auc"]
        view.add_row(
            row["group"] + ("" if row["in_training"] else " (new)"),
            f"{row['connections']}\n({row['reference_connections']})",
            "–" if auc is None else f"{auc['auc']:.2f}\n[{auc['low']:.2f}, {auc['high']:.2f}]",
            "–" if row["novel"] is None else f"{row['novel']:.2f}",
            *(_pair(row, name) for name in ("sb_share", "confidence", "accuracy")),
            row["verdict"],
        )
    console.print(view)
    for row in result["groups"]:
        moved = [f for f in row["features"][:SHOWN] if f["q"] <= 0.05]
        if row["drift"] and moved:
            texts = (
                f"{f['name']} {f['reference_median']:.3g} → {f['median']:.3g} (KS {f['ks']:.2f})"
                for f in moved
            )
            console.print(f"{row['group']}: {', '.join(texts)}")
    if result["absent"]:
        console.print(f"groups of the training set without new logs: {', '.join(result['absent'])}")
    console.print(f"{result['verdict']}: {result['reason']}", style="bold")


def _pair(row: Mapping[str, Any], name: str) -> str:
    def text(value: Mapping[str, float] | None) -> str:
        return "–" if value is None else f"{value['mean']:.2f}"

    return f"{text(row[name])}\n({text(row[f'stored_{name}'])})"


def _plot(path: Path, result: Mapping[str, Any], old: Windows, new: Windows) -> None:
    from data.files import write_file
    from models.sbd.drift.compare import names_of
    from pipelines.reporting.sbd.drift_plot import draw

    groups: Sequence[Mapping[str, Any]] = result["groups"]
    shown = names_of(groups, 6)
    content = draw(old, new, shown, groups, path.suffix)
    write_file(path, lambda part: part.write_bytes(content))
