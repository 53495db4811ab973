"""Describe a set of decisions: how many there are of what, their ranges, and how it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from data.decisions import files
from data.files import write_text
from pipelines.decisions import plan
from pipelines.league.families import FAMILIES, in_words

if TYPE_CHECKING:
    from pipelines.decisions.plan import Recipe

PAGE, SHEET, SCENARIOS = "README.md", "sheet.json", "scenarios.json"
LICENCE = "Apache-2.0"
TEMPLATE = Path(__file__).with_name("sheet.md.j2")
_MEASURED = ("change", "reward")


def write(out: Path, recipe: Recipe) -> dict[str, Any]:
    """Write the data sheet of a folder, as JSON and as Markdown, and its scenarios.

    Returns
    -------
    dict
        What the JSON says.

    Raises
    ------
    UserError
        If there are no decisions in the folder.
    """
    import jinja2

    found = described(out, recipe)
    text = json.dumps(found, indent=2) + "\n"
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(found)
    write_text(out / SCENARIOS, json.dumps(_scenarios(recipe), indent=1) + "\n")
    write_text(out / SHEET, text)
    write_text(out / PAGE, page)
    return found


def described(out: Path, recipe: Recipe) -> dict[str, Any]:
    """Everything that the sheet says, counted file by file."""
    paths, about = files.files(out), files.about(out)
    columns = (*about.observation, *_MEASURED)
    parts = []
    for path in paths:
        behaviour, split = (folder.partition("=")[2] for folder in path.parts[-3:-1])
        family = path.stem.rpartition("-")[0]
        place = {"behaviour": behaviour, "split": split, "family": family}
        counts = _file(path, columns, len(about.actions))
        parts.append({**place, "bytes": path.stat().st_size, **counts})
    table = pl.DataFrame(parts)
    total = int(table["decisions"].sum())
    actions = np.sum(table["actions"].to_list(), axis=0)
    units = dict(zip(about.observation, about.units, strict=True))
    units |= {"change": about.change_unit, "reward": "as the agent is paid"}
    return {
        "agent": about.agent,
        "decisions": total,
        "runs": int(table["runs"].sum()),
        "bytes": int(table["bytes"].sum()),
        "files": len(paths),
        "complete": _complete(out, recipe),
        "interval_us": about.interval_us,
        "schema_hash": about.schema_hash,
        "columns": {
            name: {
                "unit": units[name],
                "least": float(table[f"{name}.least"].min()),  # type: ignore[arg-type]
                "mean": float(table[f"{name}.sum"].sum()) / total,
                "most": float(table[f"{name}.most"].max()),  # type: ignore[arg-type]
            }
            for name in columns
        },
        "actions": {
            f"{value:g}": float(actions[index]) / total for index, value in enumerate(about.actions)
        },
        "by": {name: _by(table, name) for name in ("behaviour", "family", "split")},
        "families": {name: in_words(FAMILIES[name]) for name in table["family"].unique().sort()},
        "recipe": recipe.model_dump(),
        "command": recipe.command(),
        "params": about.params,
        "licence": LICENCE,
    }


def _file(path: Path, columns: tuple[str, ...], actions: int) -> dict[str, Any]:
    """What one file adds to the sheet."""
    table = pl.read_parquet(path, columns=["run", "action", *columns], hive_partitioning=False)
    found: dict[str, Any] = {"decisions": table.height, "runs": table["run"].n_unique()}
    counts = table["action"].value_counts()
    found["actions"] = [dict(counts.iter_rows()).get(index, 0) for index in range(actions)]
    for name in columns:
        values = table[name].cast(pl.Float64)
        found |= {f"{name}.least": values.min(), f"{name}.most": values.max()}
        found[f"{name}.sum"] = values.sum()
    return found


def _by(table: pl.DataFrame, key: str) -> dict[str, dict[str, float]]:
    """Decisions, runs and mean reward of each control, family or split."""
    grouped = table.group_by(key, maintain_order=True).agg(
        pl.col("decisions").sum(), pl.col("runs").sum(), pl.col("reward.sum").sum()
    )
    return {
        row[key]: {
            "decisions": row["decisions"],
            "runs": row["runs"],
            "reward": row["reward.sum"] / row["decisions"],
        }
        for row in grouped.sort(key).iter_rows(named=True)
    }


def _complete(out: Path, recipe: Recipe) -> bool:
    """Whether every file of the recipe is there."""
    return all(
        (out / task.file(split)).is_file()
        for task in plan.tasks(recipe)
        for split in plan.plays(recipe, task)
    )


def _scenarios(recipe: Recipe) -> dict[str, Any]:
    """Each scenario with its family, its split and its settings."""
    return {
        plan.scenario(recipe, family, number): {
            "family": family,
            "split": plan.split_of(number),
            "settings": one.spec.model_dump(mode="json", exclude_unset=True),
        }
        for family in FAMILIES
        for number, one in enumerate(plan.scenarios(family, recipe.seed, recipe.scenarios))
    }
