"""Evaluate a model of the zoo, or a rule-based scheme, on a table of features."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import selection
from pipelines.sources import MODEL

if TYPE_CHECKING:
    from models.sbd.accumulate import VerdictSettings
    from models.sbd.usable import Dropped
    from models.sbd.windows import Windows

EXAMPLE = """examples:
  cczoo evaluate sbd --model smartsbd-plus --features data/processed/sbd.parquet --json
  cczoo evaluate sbd --model rule:dwc --features FILE.parquet --events data/interim/events
  cczoo evaluate sbd --model smartsbd-plus --store STORE --where "day >= 2026-11-01"
rules: rule:dwc, rule:sbd, rule:ton20. A table without labels gives predictions only."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo evaluate sbd``."""
    parser.add_argument("--model", required=True, help=f"{MODEL}, or rule:NAME")
    parser.add_argument("--features", type=Path, help="table of `cczoo features`")
    selection.add_arguments(parser)
    parser.add_argument("--events", type=Path, help="ingested directory or store, for rule:NAME")
    parser.add_argument("--predictions", type=Path, help="write each window's answer to a Parquet")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Predict, compare with the labels, print."""
    import numpy as np

    from data.errors import UserError
    from data.files import write_file
    from data.place import check_other
    from models.sbd import windows as tables
    from models.sbd.evaluate.scores import score
    from models.sbd.rows import load_table, tell
    from pipelines.output import print_json

    check_other(args.predictions, "--predictions", args.features, "--features")
    whole = load_table(args.features)
    if not len(whole):
        raise UserError(f"{args.features}: no rows: no connection gave a window")
    predicted = _predict(args, whole)
    usable = np.isfinite(predicted.probability)
    labelled = whole.y >= 0
    dropped = predicted.dropped(whole, labelled=bool(labelled.any()))
    if not usable.any():
        reasons = predicted.dropped(whole, labelled=False).reasons()
        raise UserError(f"{args.features}: none of {len(whole)} rows can be used: {reasons}")
    tell(dropped, str(args.features))
    scored = usable & labelled
    result: dict[str, Any] = {"model": args.model}
    if scored.any():
        columns = tables.attributes(whole.frame, predicted.columns)
        result |= score(
            whole.take(scored),
            predicted.probability[scored],
            predicted.verdicts,
            columns,
            threshold=predicted.threshold,
        )
    else:
        result |= {"windows": len(whole), "accuracy": None}
    result |= {
        "rows": len(whole),
        "rows_unusable": int((~usable).sum()),
        "rows_unlabelled": int((~labelled).sum()),
        "dropped": dropped.described(),
    }
    answers = _answers(whole, predicted)
    if args.predictions is not None:
        write_file(args.predictions, answers.write_parquet)
    if not scored.any():
        result["predictions"] = answers.to_dicts()
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0


@dataclass(frozen=True)
class _Predicted:
    """The answers of a model or a rule for a table.

    Attributes
    ----------
    probability : float64 array [N]
        P(SB); NaN for a row without an answer.
    verdicts : VerdictSettings
        How windows add up to a verdict.
    threshold : float
        Probability above which the answer is SB.
    columns : list of str
        Names of all features.
    inputs : list of str
        Columns that the answers are made from; empty for a rule, which reads events.
    """

    probability: Any
    verdicts: VerdictSettings
    threshold: float
    columns: list[str]
    inputs: list[str]

    def dropped(self, table: Windows, labelled: bool) -> Dropped:
        """Count rows without an answer, or without a label if one is needed."""
        from models.sbd.usable import usable, without_answer

        if self.inputs:
            return usable(table, self.inputs, labelled)[1]
        return without_answer(table, self.probability, labelled)


def _predict(args: argparse.Namespace, table: Windows) -> _Predicted:
    import numpy as np

    from data.errors import UserError
    from features.sbd import FAMILIES, features_of
    from models.sbd.accumulate import VerdictSettings, verdicts_of
    from models.sbd.params import THRESHOLD

    known = [feature.name for family in FAMILIES for feature in features_of(family)]
    if args.model.startswith("rule:"):
        from models.sbd import rules

        name = args.model.removeprefix("rule:")
        rules.judge_of(name)
        if args.events is None:
            raise UserError(f"--model {args.model}: a rule needs --events DIR (`cczoo ingest`)")
        shares = rules.run(args.events, table, [name])[name]
        # The answer is that which has more of the window's time; a tie is not shared, as in sums.
        odds = np.where(np.isnan(shares[:, 0]), np.nan, _odds(shares))
        return _Predicted(odds, VerdictSettings(), THRESHOLD, known, [])
    from models.sbd.evaluate.model import probabilities
    from pipelines.sources import open_model

    model = open_model(args.model)
    probability = probabilities(model, table, args.features, args.model)
    verdicts = verdicts_of(model.meta.calibration, model.meta.accumulation)
    return _Predicted(probability, verdicts, model.meta.threshold, known, list(model.meta.features))


def _odds(shares: Any) -> Any:
    total = shares.sum(axis=1)
    return (shares[:, 0] + (1 - total) / 2).clip(0, 1)


def _answers(table: Windows, predicted: _Predicted) -> Any:
    """Table with a row per usable window: probability, answer, accumulated confidence, verdict."""
    import numpy as np
    import polars as pl

    from models.sbd.accumulate import decide
    from models.sbd.evaluate.scores import connection_state
    from models.stats.calibration import sigmoid

    probability, verdicts = predicted.probability, predicted.verdicts
    kept = np.isfinite(probability)
    usable = table.take(kept)
    state = connection_state(probability[kept], usable.group, verdicts)
    words = np.array(["NSB", "SB", "undecided"])
    keys = [c for c in ("source", "connection", "window") if c in usable.frame.columns]
    return usable.frame.select(keys).with_columns(
        pl.Series("probability", probability[kept]),
        pl.Series("answer", words[(probability[kept] > predicted.threshold).astype(int)]),
        pl.Series("accumulated_probability", sigmoid(state)),
        pl.Series("verdict", words[decide(state, verdicts.limit)]),
    )


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if result["accuracy"] is None:
        unlabelled = result["rows_unlabelled"] == result["rows"]
        why = "no labels" if unlabelled else "no labelled window with finite features"
        console.print(f"{result['model']}: {result['windows']} windows, {why} to compare with")
        view = Table("connection", "window", "P(SB)", "answer", "verdict so far")
        for row in result.get("predictions", []):
            view.add_row(
                row["connection"],
                str(row["window"]),
                f"{row['probability']:.3f}",
                row["answer"],
                row["verdict"],
            )
        console.print(view)
        return
    from models.card import interval

    view = Table("", "accuracy [95 %]", "count", title=result["model"])
    for key in ("accuracy", "sb_accuracy", "nsb_accuracy", "connection_accuracy"):
        of = result["connections"] if key.startswith("connection") else ""
        of = result["windows"] if key == "accuracy" else of
        view.add_row(key, interval(result["intervals"][key]), str(of))
    undecided = result["accumulated"]["undecided_connections"]
    view.add_row("connections undecided", "–" if undecided is None else f"{undecided:.3f}", "")
    for column, values in result["by"].items():
        for value, row in values.items():
            accuracy = "–" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
            view.add_row(f"{column} = {value}", accuracy, str(row["windows"]))
    console.print(view)
