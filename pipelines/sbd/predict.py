"""Say which subflows of each connection share a bottleneck, and so which to couple."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError, unknown_name
from pipelines import selection
from pipelines.sources import MODEL

if TYPE_CHECKING:
    import polars as pl

    from models.sbd.accumulate import VerdictSettings
    from models.sbd.evaluate.partition import Grid
    from models.sbd.windows import Windows
    from models.store import ZooModel

EXAMPLE = """examples:
  cczoo predict sbd --model smartsbd-plus --events data/interim/events
  cczoo predict sbd --model smartsbd-dt --features FILE.parquet --by case --out answers --json
--out writes pairs.parquet (each verdict) and subflows.parquet (each subflow's set, and whether
it is coupled). With labels the answers are compared with them."""

VERDICTS = ("accumulated", "window")
SHOWN = 40
"""Number of connections that are printed; --out and --json have all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("what", help="what to predict: sbd")
    parser.add_argument("--model", required=True, help=MODEL)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--events", type=Path, help="directory made by `cczoo ingest`, or a store")
    source.add_argument("--features", type=Path, help="table of `cczoo features sbd`")
    selection.add_events(parser)
    parser.add_argument("--jobs", type=int, default=0, help="processes (default: all cores)")
    parser.add_argument(
        "--verdicts",
        default=VERDICTS[0],
        help="of the windows so far (accumulated, default) or of each window by itself (window)",
    )
    parser.add_argument("--by", default="", help="columns to break scores down by, with commas")
    parser.add_argument("--out", type=Path, help="directory for pairs.parquet, subflows.parquet")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Predict, compare with labels if there are any, and print."""
    import numpy as np

    from models.sbd.accumulate import verdicts_of
    from models.sbd.evaluate.partition import contradictions, grid, partitions
    from models.sbd.evaluate.scores import connection_state
    from models.sbd.rows import tell
    from models.sbd.usable import usable
    from pipelines.output import print_json
    from pipelines.sources import open_model

    if args.what != "sbd":
        raise unknown_name("prediction", args.what, ["sbd"])
    if args.verdicts not in VERDICTS:
        raise unknown_name("kind of verdict", args.verdicts, VERDICTS)
    if args.out is not None and args.out.is_file():
        raise UserError(f"--out {args.out}: is a file: give a directory to make")
    model = open_model(args.model)
    table = _table(args, model)
    columns = [name for name in args.by.split(",") if name]
    for name in columns:
        if name not in table.frame.columns:
            raise unknown_name("column", name, table.frame.columns)
    mask, dropped = usable(table, model.meta.features, labelled=False)
    where = str(args.features or args.events)
    if not mask.any():
        raise UserError(f"{where}: none of {len(table)} rows can be used: {dropped.reasons()}")
    tell(dropped, where)
    kept = table.take(mask)
    probability = model.predict_proba(kept.matrix(model.meta.features))
    settings = verdicts_of(model.meta.calibration, model.meta.accumulation)
    shared_by = {
        "window": probability > model.meta.threshold,
        "accumulated": connection_state(probability, kept.group, settings) >= 0,
    }
    arranged = grid(kept)
    chosen = shared_by[args.verdicts]
    found = partitions(arranged, chosen)
    result: dict[str, Any] = {
        "model": args.model,
        "verdicts": args.verdicts,
        "rows": len(table),
        "rows_unusable": dropped.not_finite,
        "dropped": dropped.described(),
        "windows": len(arranged.connection),
        "connections": len(arranged.names),
        "subflows": _count(len(names) for names in arranged.names),
        "scores": {
            kind: contradictions(arranged, shared) | _scores(kept, arranged, shared, columns)
            for kind, shared in shared_by.items()
        },
    }
    if args.out is not None:
        frames = _frames(kept, arranged, probability, settings, chosen, found)
        result["out"] = _write(args.out, frames)
    last = np.flatnonzero(arranged.last())
    rows = np.unique(arranged.window, return_index=True)[1]
    names = kept.frame["connection"].cast(str).to_list()
    result["predictions"] = [
        {
            "connection": names[rows[w]],
            "window": int(arranged.index[w]),
            "partition": found[w],
            "coupled": [s for subset in found[w] if len(subset) > 1 for s in subset],
            "uncoupled": [s for subset in found[w] if len(subset) == 1 for s in subset],
        }
        for w in last
    ]
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0


def _table(args: argparse.Namespace, model: ZooModel) -> Windows:
    """Windows of the given features, or of features computed with the model's own settings."""
    from models.sbd import windows
    from models.sbd.rows import load_table

    if args.features is not None:
        from models.sbd.computed_with import check

        whole = load_table(args.features)
        check(args.features, model)
    else:
        import os

        from features.params import SbdParams
        from pipelines.feature_rows import featurize

        jobs = args.jobs or len(os.sched_getaffinity(0))
        settings = SbdParams.parse(model.meta.feature_settings, f"{args.model}: feature_settings")
        whole = windows.windows(featurize(args.events, settings, jobs)[0])
    if not len(whole):
        raise UserError(f"{args.features or args.events}: no connection gave a window")
    return whole


def _count(sizes: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for size in sizes:
        counts[str(size)] = counts.get(str(size), 0) + 1
    return dict(sorted(counts.items()))


def _scores(table: Windows, arranged: Grid, shared: Any, columns: list[str]) -> dict[str, Any]:
    import numpy as np

    from models.sbd.evaluate.partition import grid, score

    if not (table.y >= 0).any():
        return {}
    found = score(arranged, shared, table.y)
    if columns:
        found["by"] = {}
        for name in columns:
            of = table.column(name)
            for value in np.unique(of):
                part = table.take(of == value)
                scored = score(grid(part), shared[of == value], part.y)
                found["by"].setdefault(name, {})[str(value)] = scored
    return found


def _frames(
    table: Windows,
    arranged: Grid,
    probability: Any,
    settings: VerdictSettings,
    shared: Any,
    found: list[list[list[int]]],
) -> dict[str, pl.DataFrame]:
    """Two tables with rows for each window: one row per pair, and one row per subflow."""
    import numpy as np
    import polars as pl

    from models.sbd.evaluate.scores import connection_state
    from models.stats.calibration import sigmoid

    own = [c for c in ("source", "connection", "window", "start_us", "end_us", "label",
                       "subflow_a", "subflow_b") if c in table.frame.columns]  # fmt: skip
    pairs = table.frame.select(own).with_columns(
        pl.Series("probability", probability),
        pl.Series(
            "accumulated_probability",
            sigmoid(connection_state(probability, table.group, settings)),
        ),
        pl.Series("answer", np.where(shared, "SB", "NSB")),
    )
    keys = [c for c in ("source", "connection", "window", "start_us", "end_us") if c in own]
    _, first = np.unique(arranged.window, return_index=True)
    rows = [
        (w, subflow, subset[0], len(subset) > 1)
        for w, subsets in enumerate(found)
        for subset in subsets
        for subflow in subset
    ]
    each = pl.DataFrame(rows, ["w", "subflow", "group", "coupled"], orient="row")
    heads = table.frame.select(keys)[first].with_row_index("w").with_columns(pl.col("w").cast(int))
    subflows = each.join(heads, on="w", how="left", maintain_order="left")
    subflows = subflows.select(*keys, "subflow", "group", "coupled").sort(*keys, "subflow")
    return {"pairs": pairs.sort(own[:3]), "subflows": subflows}


def _write(out: Path, frames: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    from data.files import write_file

    written = {}
    for name, frame in frames.items():
        path = out / f"{name}.parquet"
        write_file(path, partial(frame.write_parquet, compression="zstd"))
        written[name] = str(path)
    return written


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from models.card import interval

    console = Console()
    sizes = ", ".join(f"{n} of {size} subflows" for size, n in result["subflows"].items())
    console.print(f"{result['model']}: {result['windows']} windows of {sizes} (connections)")
    if any("pair_accuracy" in scores for scores in result["scores"].values()):
        view = Table("", *result["scores"], title="right, of what is labelled [95 %]")
        keys = ("pair_accuracy", "sb_accuracy", "nsb_accuracy", "exact_partition",
                "exact_connection")  # fmt: skip
        for key in keys:
            view.add_row(key, *(interval(s[key]) for s in result["scores"].values()))
        for column, values in next(iter(result["scores"].values())).get("by", {}).items():
            for value in values:
                of = [scores["by"][column][value] for scores in result["scores"].values()]
                cells = (interval(scores["exact_partition"]) for scores in of)
                view.add_row(f"exact_partition, {column} = {value}", *cells)
        console.print(view)
    for kind, scores in result["scores"].items():
        if scores["windows_of_three"]:
            share = f"{scores['not_transitive']} of {scores['windows_of_three']} windows"
            console.print(f"verdicts that aren't transitive ({kind}): {share}")
    view = Table("window", "sets", "coupled", "uncoupled", title="last window")
    view.add_column("connection", overflow="fold")
    for row in result["predictions"][:SHOWN]:
        sets = " ".join("{" + ",".join(map(str, subset)) + "}" for subset in row["partition"])
        cells = (",".join(map(str, row[kind])) or "–" for kind in ("coupled", "uncoupled"))
        view.add_row(str(row["window"]), sets, *cells, row["connection"])
    console.print(view)
    if len(result["predictions"]) > SHOWN:
        console.print(f"... and {len(result['predictions']) - SHOWN} more: --json or --out has all")
    for path in result.get("out", {}).values():
        console.print(f"→ {path}")
