"""Compares two models on families of conditions that neither was trained on, window by window.

Reads what `cczoo train sbd protocol` has predicted; the interval is a bootstrap over connections of
the paired differences.

    python -m pipelines.sbd.left_out smartsbd-plus-lr smartsbd-plus-kernel --json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError, unknown_name
from features.sbd import features_of
from models.sbd.params import THRESHOLD
from models.sbd.rows import training_table
from models.sbd.train import selection
from models.sbd.train.model_specs import FAMILY_NAMES
from models.sbd.windows import Windows
from models.stats.intervals import by_connection
from pipelines.sbd.train.shared import FEATURES, OUT


def paired(predictions: pl.DataFrame, table: Windows, first: str, second: str) -> dict[str, Any]:
    """Accuracies of both models, and the second's less the first's, per window.

    Parameters
    ----------
    predictions : polars.DataFrame
        What the protocol has predicted.
    table : Windows
        The table that its rows are of.
    first, second : str
        Models.

    Returns
    -------
    dict
        ``first``, ``second`` and ``difference``, each with ``mean``, ``low`` and ``high``;
        ``windows`` and ``connections``.
    """
    hits, places = [], []
    for name in (first, second):
        rows, probability = selection.outer(predictions, name)
        if rows.size == 0:
            raise unknown_name("model", name, sorted(predictions["model"].unique()))
        hits.append((probability > THRESHOLD) == (table.y[rows] == 1))
        places.append(rows)
    if not np.array_equal(places[0], places[1]):
        raise UserError(
            f"{first} and {second} were judged on other windows: run cczoo train sbd protocol again"
        )
    group = table.group[rows]
    apart = hits[1].astype(np.float64) - hits[0].astype(np.float64)
    named = {"first": hits[0], "second": hits[1], "difference": apart}
    found: dict[str, Any] = {key: {**by_connection(of, group)} for key, of in named.items()}
    return found | {"windows": int(rows.size), "connections": int(np.unique(group).size)}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison; returns 0."""
    from pipelines.output import print_json

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", help="a model of the protocol")
    parser.add_argument("second", help="the one whose difference is told")
    parser.add_argument("--features", type=Path, default=FEATURES, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=OUT, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    args = parser.parse_args(argv)
    names = [feature.name for family in FAMILY_NAMES for feature in features_of(family)]
    try:
        file = args.out / "predictions.parquet"
        if not file.is_file():
            raise UserError(f"{file}: isn't there: run cczoo train sbd protocol")
        table, _ = training_table(args.features, names)
        found = paired(pl.read_parquet(file), table, args.first, args.second)
    except UserError as error:
        print(f"left_out: {error}", file=sys.stderr)
        return 2
    if args.json:
        print_json(found)
        return 0
    for key, label in (("first", args.first), ("second", args.second), ("difference", "apart")):
        one = found[key]
        print(f"{label}: {one['mean']:.4f} [{one['low']:.4f}, {one['high']:.4f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
