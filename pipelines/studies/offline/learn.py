"""Trains every method with every seed, and asks the logs which control did best."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from data.decisions import files
from data.errors import UserError
from data.results import ResultFile
from models.offline import methods
from models.offline.source import Source
from models.offline.training import learn
from models.rl import checkpoint
from pipelines.decisions import plan
from pipelines.league.families import FAMILIES, STANDINGS
from pipelines.offline.train import Shown
from pipelines.studies.offline.kept import COMMAND, SAMPLER, Cost, Learned

COST = ResultFile("cost.json", Cost, f"{COMMAND} learn")
SETTINGS: dict[str, Any] = {"subflows": 3, "env": {"sampler": SAMPLER}}
"""The league has up to three paths."""
FIRST_SEED = 7


def learned(names: Sequence[str], seeds: int, updates: int, decisions: Path, out: Path) -> Learned:
    """Train what isn't trained yet, seed by seed; what was stopped has as many of each.

    Parameters
    ----------
    names : sequence of str
        Keys of `models.offline.methods.METHODS`.
    seeds, updates : int
    decisions : Path
        The open data set, or a sample of it.
    out : Path
        Where trainings are kept: ``METHOD/seed-N``.
    """
    numbers = list(range(FIRST_SEED, FIRST_SEED + seeds))
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    settings: Any = None
    for seed in numbers:
        for name in names:
            changes = {**SETTINGS, "seed": seed, "updates": updates}
            settings = methods.settings(name, changes)
            costs[name].append(_trained(name, Source(decisions, settings), out))
    counts = _counts(decisions)
    return Learned(
        **counts,
        updates=updates,
        batch=settings.batch,
        context=settings.context,
        seeds=numbers,
        costs=costs,
        rewards=rewards(decisions),
    )


def _trained(name: str, source: Source, out: Path) -> Cost:
    folder = out / name / f"seed-{source.settings.seed}"
    there = checkpoint.latest(folder) is not None
    begun = time.process_time()
    learn(name, source, folder, resume=True, watch=Shown(f"{name}, seed {source.settings.seed}"))
    if there and (folder / COST.name).is_file():
        return COST.read(folder)
    spent = {"cpu_s": round(time.process_time() - begun, 1), "peak_mb": round(peak_mb())}
    return COST.write(folder, spent)


def peak_mb() -> float:
    """The most memory that this process has had (MB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _counts(decisions: Path) -> dict[str, Any]:
    rows = pl.scan_parquet(files.files(decisions), hive_partitioning=False)
    one = rows.select(pl.len(), pl.col("first").filter(pl.col("subflow") == 0).sum())
    count, runs = one.collect(engine="streaming").row(0)
    recipe = plan.Recipe()
    whole = len(plan.tasks(recipe)) * recipe.scenarios
    return {"decisions": count, "runs": runs, "share": round(runs / whole, 4)}


def rewards(decisions: Path) -> dict[str, dict[str, float]]:
    """Mean rewards of controls by what the logs for training and validation say.

    Raises
    ------
    UserError
        When no control plays all families of a standing.
    """
    there = [one for one in files.files(decisions) if files.split(one) != "test"]
    family = pl.col("scenario").str.replace(r"-\d+\.\d+$", "").alias("family")
    rows = pl.scan_parquet(there, hive_partitioning=False)
    table = rows.group_by("behaviour", family).agg(pl.col("reward").mean())
    found: dict[str, dict[str, float]] = {}
    for row in table.collect(engine="streaming").sort("behaviour", "family").iter_rows(named=True):
        found.setdefault(row["behaviour"], {})[row["family"]] = row["reward"]
    result = {}
    for standing in STANDINGS:
        members = [name for name, one in FAMILIES.items() if one.standing == standing]
        result[standing] = {
            control: sum(mine[name] for name in members) / len(members)
            for control, mine in found.items()
            if all(name in mine for name in members)
        }
        if not result[standing]:
            raise UserError(
                f"{decisions}: no control there in all families of {STANDINGS[standing]}: make "
                "them by python -m pipelines.decisions.generate"
            )
    return result
