"""Compares models on the same windows: those of live runs, read from their kernel logs.

A live run obeys one model. Its log lets any other classify the same windows afterwards, so that two
models are compared on the same conditions, losses and congestion windows included. The log is read
by the integer features that exported code computes; runs whose bottleneck moves are left out.

    cczoo lab live build/plus --scenario live-sb,live-nsb --cc smartsbd --out build/live
    python -m pipelines.live.beside build/live smartsbd-plus-kernel smartsbd-dt
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.ingest import ingest
from data.lab.runs import resume
from data.place import scratch
from data.store import iter_connections
from export.feature_code import generator
from export.feature_code.verdicts import integer_verdicts
from export.source import Source, source_of
from features.fixed_sbd import evaluate, needs_throughput
from features.fixed_series import calls
from features.params import SbdParams
from features.windows import Events, choose_pair
from pipelines.live.record import label_class
from pipelines.live.runs import LOG

LEAST_EVENTS = 1000
"""Connections of fewer are the traffic's control connection."""


def valid_runs(out: Path) -> dict[Path, dict[str, Any]]:
    """Kernel log -> record of each valid run of a model whose bottleneck stayed where it was."""
    found = {}
    for record in resume(out / LOG):
        if record["kind"] != "run" or not record["valid"] or record["cc"] != "smartsbd":
            continue
        name = "-".join(str(record[key]) for key in ("scenario", "site", "cc", "repeat"))
        log = out / "logs" / f"{name}.klog.zst"
        if len(record["phases"]) == 1 and log.is_file():
            found[log] = record
    return found


def answers(source: Source, events: Events, pair: Sequence[int]) -> dict[str, list[int]]:
    """A model's classes of a connection's windows, and what holds after each.

    What holds is the class itself, or of a model whose verdicts travel the last verdict; before the
    first one the subflows are coupled, as if they shared a bottleneck.
    """
    params = SbdParams.parse(source.feature_settings, source.name)
    if source.form is None:
        raise UserError(f"{source.name}: has no integer form")
    generate = generator(source.family, source.features)
    if generate is None:
        raise UserError(f"{source.name}: no code computes its features, so that it can't run live")
    # A live run's first subflow is WiFi's, however many events each has.
    throughput = needs_throughput(source.features)
    x = evaluate(calls(events, sorted(pair), params, throughput), 0, params, source.features).x
    verdicts = source.form.evaluate(x)
    classes = [int(one) for one in verdicts.classes]
    settings = integer_verdicts(source.verdicts, source.form)
    if settings is None:
        return {"classes": classes, "held": classes}
    held, last = [], label_class("SB")
    for verdict in settings.run(verdicts.scores.tolist()):
        last = last if verdict < 0 else verdict
        held.append(last)
    return {"classes": classes, "held": held}


def compare(
    runs: Mapping[Path, dict[str, Any]], sources: Sequence[Source], events: Path
) -> list[dict[str, Any]]:
    """Windows that each model has right, a row per scenario, site and model.

    Parameters
    ----------
    runs : mapping
        The result of :func:`valid_runs`.
    sources : sequence of Source
        Models whose features a kernel computes.
    events : Path
        The logs, ingested.

    Returns
    -------
    list of dict
        ``scenario``, ``site``, ``model``, ``runs``, ``windows``, ``right`` (by class) and ``held``
        (by what holds after the window).
    """
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record, subflows in _connections(runs, events):
        pair = choose_pair(subflows)
        if pair is None:
            continue
        truth = label_class(record["phases"][0]["label"])
        for source in sources:
            key = (record["scenario"], record["site"], source.name)
            row = rows.setdefault(key, {"runs": 0, "windows": 0, "right": 0, "held": 0})
            found = {name: np.array(one) for name, one in answers(source, subflows, pair).items()}
            row["runs"] += 1
            row["windows"] += found["classes"].size
            row["right"] += int((found["classes"] == truth).sum())
            row["held"] += int((found["held"] == truth).sum())
    names = ("scenario", "site", "model")
    return [dict(zip(names, key, strict=True)) | row for key, row in sorted(rows.items())]


def _connections(
    runs: Mapping[Path, dict[str, Any]], events: Path
) -> Iterator[tuple[dict[str, Any], Events]]:
    by_name = {log.name.removesuffix(".klog.zst"): record for log, record in runs.items()}
    for row, subflows in iter_connections(events):
        count = sum(times.size for one in subflows.values() for times, _ in one.values())
        name = next((n for n in by_name if f"{n}." in f"{row['source']}."), "")
        if name and count >= LEAST_EVENTS:
            yield by_name[name], subflows


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns 0."""
    from pipelines.output import print_json
    from pipelines.sources import open_model

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder of cczoo lab live")
    parser.add_argument("models", nargs="+", help="names in the zoo, or directories")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    args = parser.parse_args(argv)
    try:
        runs = valid_runs(args.out)
        if not runs:
            raise UserError(f"{args.out}: no valid run with its log: run cczoo lab live there")
        sources = [source_of(open_model(name)) for name in args.models]
        with scratch("beside") as work:
            ingest(list(runs), work / "events")
            rows = compare(runs, sources, work / "events")
    except UserError as error:
        print(f"beside: {error}", file=sys.stderr)
        return 2
    if args.json:
        print_json({"rows": rows})
        return 0
    print("| scenario | site | model | runs | windows | right by class | right by what holds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(str(value) for value in row.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
