"""The search and the protocol of ``cczoo train sbd``: each step leaves files for the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from data.files import write_file
from models.sbd import rules
from models.sbd.evaluate import scores, splits, tables
from models.sbd.results.accuracy import MIXED, RULES, TABLE5, TABLE6, TRANSFER
from models.sbd.results.scores import CONFUSION, DELAY
from models.sbd.results.search import BEST, MI
from models.sbd.results.verdicts import CALIBRATION, LOFO, PLUS
from models.sbd.train import ranking, search, selection
from models.sbd.train.candidates import all_model_specs
from models.sbd.train.job import Job
from models.sbd.train.model_specs import KERNEL


def step_search(job: Job) -> dict[str, Any]:
    """Rank the features and search Table 4's spaces; writes mi.json, search.csv, best.json."""
    params, table = job.params, job.sites()
    ranked = {}
    for family, names in job.names.items():
        ranked[family] = ranking.ranking(
            table.matrix(names),
            table.y,
            names,
            params.selection.seeds,
            params.selection.neighbours,
            params.seed,
        )
    subsets = ranking.subsets(ranked["smartsbd"], params.search.subsets)
    curves = search.run(table, subsets, params.search, params.seed, params.workers, job.progress)
    best = search.best(curves, params.protocol.top_k)
    MI.write(job.out, {"ranking": ranked, "subsets": subsets})
    write_file(job.out / "search.csv", curves.write_csv)
    BEST.write(job.out, best)
    return {"top": [row["feature"] for row in ranked["smartsbd"][:8]], "best": best}


def step_protocol(job: Job) -> dict[str, Any]:
    """Predict everything out of sample and write the tables; see `write_tables`."""
    params, table = job.params, job.table
    todo = splits.splits(table, params.protocol, params.seed)
    if not todo:
        raise UserError(
            f"{job.features}: too few connections of either class to test on those that "
            "training leaves out: collect more"
        )
    known = all_model_specs(job)
    single = [split for split in todo if split.protocol != "families"]
    nested = [split for split in todo if split.protocol == "families"]
    candidates = [r for r in known if r.name.startswith("smartsbd-plus")]
    frames = [splits.predict(table, known, single, params.seed, params.workers, job.progress)]
    if nested:
        frames.append(
            splits.predict(table, candidates, nested, params.seed, params.workers, job.progress)
        )
    predictions = pl.concat(frames)
    job.out.mkdir(parents=True, exist_ok=True)
    write_file(job.out / "predictions.parquet", predictions.write_parquet)
    return write_tables(job, predictions, [r.name for r in candidates])


def write_tables(job: Job, predictions: pl.DataFrame, candidates: list[str]) -> dict[str, Any]:
    """Write every result table of the protocol and return the headline figures."""
    params, table = job.params, job.table
    column = params.protocol.family_column
    confidence = params.plus.confidence
    found = selection.choose(predictions, candidates, table, column, confidence, [KERNEL])
    choice = PLUS.write(job.out, found)
    outer = {} if choice is None else choice.outer
    fitted = {
        (model, family): plan.verdicts[model]
        for family, plan in outer.items()
        for model in candidates
    }
    table5 = TABLE5.write(job.out, tables.within(table, predictions, "within", params))
    table6 = TABLE6.write(
        job.out,
        {
            kind: tables.by_value(table, predictions, kind, "case", params)
            for kind in ("unseen", "unseen-varied")
        },
    )
    families = tables.by_value(table, predictions, "family", column, params, fitted)
    # The model that is chosen anew for each family, beside the candidates' own.
    nested = tables.honest_verdicts(table, predictions, choice, None)
    each = {name: tables.honest_verdicts(table, predictions, choice, name) for name in candidates}
    verdicts = {} if choice is None else choice.verdicts
    pooled = tables.scores(
        table, predictions, ("within", "mixed", "unseen", "family"), verdicts, params
    )
    MIXED.write(job.out, tables.within(table, predictions, "mixed", params))
    TRANSFER.write(job.out, tables.by_value(table, predictions, "transfer", column, params))
    left_out = LOFO.write(job.out, {"families": families, "nested": nested, "candidates": each})
    CALIBRATION.write(job.out, tables.calibration(table, predictions, choice))
    CONFUSION.write(job.out, pooled)
    DELAY.write(job.out, delays(job, predictions, verdicts))
    if job.events is not None:
        shares = rules.run(job.events, table, list(rules.RULES), job.progress)
        RULES.write(job.out, tables.rules(table, shares, params))
    return {
        "within": {r.model: r.both["mean"] for r in table5 if r.dataset == "ALL"},
        "unseen": {r.model: r.window["mean"] for r in table6.unseen if r.value == "ALL"},
        "family": {
            r.model: [r.window["mean"], r.connection["mean"]]
            for r in left_out.families
            if r.value == "ALL"
        },
        "chosen": None if choice is None else choice.chosen,
        "nested": nested,
    }


def delays(job: Job, predictions: pl.DataFrame, verdicts: Mapping[str, Any]) -> dict[str, Any]:
    """Detection delay per model and data set, on rows predicted out of sample."""
    found: dict[str, Any] = {}
    for model in predictions["model"].unique(maintain_order=True):
        # Whole connections: each by the first split that tested it.
        mine = predictions.filter(
            (pl.col("model") == model) & pl.col("protocol").is_in(["within", "unseen", "family"])
        )
        mine = mine.unique("row", keep="first", maintain_order=True).sort("row")
        mask = np.zeros(len(job.table), dtype=np.bool_)
        mask[mine["row"].to_numpy()] = True
        found[model] = scores.delay(
            job.table.take(mask), mine["probability"].to_numpy(), verdicts.get(model, tables.PLAIN)
        )
    return found
