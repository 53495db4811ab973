"""The steps of ``cczoo train sbd``: each reads files, calls the models layer, writes files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from data.files import write_file, write_text
from features.sbd import features_of
from models.sbd import rules
from models.sbd.content import content_hash
from models.sbd.evaluate import scores, splits, tables
from models.sbd.evaluate.holdout import check_trainable, unseen_rows
from models.sbd.evaluate.splits import Recipe
from models.sbd.params import Params
from models.sbd.train import ranking, recipes, search, selection
from models.sbd.usable import Dropped
from models.sbd.windows import Windows
from pipelines.computed_with import settings_of
from pipelines.output import progress
from pipelines.params import load as load_settings
from pipelines.rows import training_table


@dataclass
class Job:
    """Where a training run reads and writes."""

    features: Path
    out: Path
    params: Params
    events: Path | None = None
    zoo: Path | None = None
    dropped: Dropped = field(default_factory=Dropped)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Feature names per family."""
        return {family: [f.name for f in features_of(family)] for family in recipes.FAMILY_NAMES}

    @cached_property
    def table(self) -> Windows:
        """Labelled rows with finite features of both families; says what it leaves out.

        Raises
        ------
        UserError
            When windows are there twice, or nothing is left to learn from.
        """
        both = [name for names in self.names.values() for name in names]
        table, self.dropped = training_table(self.features, both)
        check_trainable(table, self.params.protocol, str(self.features))
        return table

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the table's features were computed with: a part of every model trained on it."""
        return settings_of(self.features).model_dump()

    @cached_property
    def data_hash(self) -> str:
        """Content of the table, see `models.sbd.content`."""
        known = [feature for family in recipes.FAMILY_NAMES for feature in features_of(family)]
        return content_hash(self.table, known)

    def sites(self) -> Windows:
        """The rows of the sites; all but the unseen cases where these lack a class."""
        settings = self.params.protocol
        mask = splits.site_rows(self.table, settings)
        lacking = np.unique(self.table.y[mask]).size < 2
        return self.table.take(~unseen_rows(self.table, settings) if lacking else mask)

    def write(self, name: str, value: Any) -> None:
        """Write one result table as JSON, whole or not at all."""
        self.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_plain(value), indent=1, allow_nan=False) + "\n"
        write_text(self.out / name, text)

    def read(self, name: str) -> Any:
        """Read a result table of an earlier step."""
        path = self.out / name
        if not path.is_file():
            raise UserError(f"{path}: missing: run `cczoo train sbd` with the earlier steps first")
        return json.loads(path.read_text(encoding="utf-8"))


def load_params(path: Path | None, seed: int | None = None) -> Params:
    """Settings from ``models.sbd`` of a YAML file, defaults without one."""
    settings = load_settings(path).models.sbd
    return settings if seed is None else settings.model_copy(update={"seed": seed})


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
    curves = search.run(table, subsets, params.search, params.seed, params.workers, _progress)
    best = search.best(curves, params.protocol.top_k)
    job.write("mi.json", {"ranking": ranked, "subsets": subsets})
    write_file(job.out / "search.csv", curves.write_csv)
    job.write("best.json", best)
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
    known = all_recipes(job)
    single = [split for split in todo if split.protocol != "families"]
    nested = [split for split in todo if split.protocol == "families"]
    candidates = [r for r in known if r.name.startswith("smartsbd-plus")]
    frames = [splits.predict(table, known, single, params.seed, params.workers, _progress)]
    if nested:
        frames.append(
            splits.predict(table, candidates, nested, params.seed, params.workers, _progress)
        )
    predictions = pl.concat(frames)
    job.out.mkdir(parents=True, exist_ok=True)
    write_file(job.out / "predictions.parquet", predictions.write_parquet)
    return write_tables(job, predictions, [r.name for r in candidates])


def write_tables(job: Job, predictions: pl.DataFrame, candidates: list[str]) -> dict[str, Any]:
    """Write every result table of the protocol and return the headline figures."""
    params, table = job.params, job.table
    column = params.protocol.family_column
    choice = selection.choose(predictions, candidates, table, column, params.plus.confidence)
    job.write("plus.json", choice)
    fitted = {
        (model, family): plan["verdicts"][model]
        for family, plan in choice.get("outer", {}).items()
        for model in candidates
    }
    # A row of the model that is chosen anew for each family, beside the candidates' own.
    table5 = tables.within(table, predictions, "within", params)
    table6 = {
        kind: tables.by_value(table, predictions, kind, "case", params)
        for kind in ("unseen", "unseen-varied")
    }
    families = tables.by_value(table, predictions, "family", column, params, fitted)
    nested = tables.honest_verdicts(table, predictions, choice, None)
    each = {name: tables.honest_verdicts(table, predictions, choice, name) for name in candidates}
    verdicts = choice.get("verdicts", {})
    pooled = tables.scores(
        table, predictions, ("within", "mixed", "unseen", "family"), verdicts, params
    )
    job.write("table5.json", table5)
    job.write("table6.json", table6)
    job.write("mixed.json", tables.within(table, predictions, "mixed", params))
    job.write("transfer.json", tables.by_value(table, predictions, "transfer", column, params))
    job.write("lofo.json", {"families": families, "nested": nested, "candidates": each})
    job.write("calibration.json", tables.calibration(table, predictions, choice))
    job.write("confusion.json", pooled)
    job.write("delay.json", delays(job, predictions, verdicts))
    if job.events is not None:
        shares = rules.run(job.events, table, list(rules.RULES), _progress)
        job.write("rules.json", tables.rules(table, shares, params))
    return {
        "within": {r["model"]: r["both"]["mean"] for r in table5 if r["dataset"] == "ALL"},
        "unseen": {r["model"]: r["window"]["mean"] for r in table6["unseen"] if r["case"] == "ALL"},
        "family": {
            r["model"]: [r["window"]["mean"], r["connection"]["mean"]]
            for r in families
            if r[column] == "ALL"
        },
        "chosen": choice.get("chosen"),
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


def all_recipes(job: Job) -> list[Recipe]:
    """Every model of the comparison, as the search left its hyperparameters."""
    best = job.read("best.json")
    subsets = job.read("mi.json")["subsets"]
    top = subsets[min(job.params.protocol.top_k, len(subsets)) - 1]
    family = job.names
    known = recipes.paper(top, best, job.params)
    known += recipes.paper(family["smartsbd"], best, job.params, "-all")[:3]
    known.append(recipes.alone(top[0]))
    known += recipes.plus(family["smartsbd-plus"], job.params)
    if recipes.CORRELATION in family["smartsbd-plus"]:
        known.append(recipes.threshold())
    return known


def step_fit(job: Job) -> dict[str, Any]:
    """Fit what is kept and write it to the zoo; see `pipelines.sbd.fit`."""
    from pipelines.sbd.fit import fit_zoo

    return fit_zoo(job, all_recipes(job))


STEPS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "search": step_search,
    "protocol": step_protocol,
    "fit": step_fit,
}


def print_summary(summary: Mapping[str, Any]) -> None:
    """The headline figures for people."""
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    done = summary.get("protocol")
    if done:
        view = Table("sites", "Table 6", "families", "(connections)")
        view.columns.insert(0, Column("model", no_wrap=True))
        for model, within in done["within"].items():
            left = done["family"].get(model, [None, None])
            figures = (within, done["unseen"].get(model), *left)
            view.add_row(model, *("–" if f is None else f"{f:.3f}" for f in figures))
        console.print(view)
        console.print(f"chosen for conditions not trained on: {done['chosen']}")
    if "search" in summary:
        console.print(f"top features: {', '.join(summary['search']['top'])}")
    if "fit" in summary:
        console.print(f"kept: {', '.join(summary['fit'])}")


def _progress(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
    return progress(items, what, total)


def _plain(value: Any) -> Any:
    """JSON-ready: settings models as dicts, NaN as null, numpy scalars as numbers."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    return value
