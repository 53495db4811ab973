"""Records of trainings of policies for the registry: entries, settings and figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from models.families import experiment_of
from models.policies import ENTRY
from pipelines.registry.outbox import Training

if TYPE_CHECKING:
    from models.store import ZooModel

LEARNED_IN = "simulation"
"""In place of a data hash: what they learn from is drawn, by settings that are kept."""
TAGS = {"budget": "none", "certificate": "none"}
"""Tags of a version: nothing proves a policy yet."""


def trainings(
    run: str, found: Iterable[ZooModel], tags: Mapping[str, str] | None = None
) -> list[Training]:
    """Records of policies, one for each agent's settings: senders and routers learned together.

    Parameters
    ----------
    run : str
        Name of the run.
    found : iterable of ZooModel
        Entries of policies.
    tags : mapping, optional
        More tags of each version.
    """
    grouped: dict[str, list[ZooModel]] = {}
    for model in found:
        description = model.read_json(ENTRY)
        key = repr([description["agent"], description["settings"]])
        # One of the same name is of another training, though it was set alike.
        while any(one.meta.name == model.meta.name for one in grouped.get(key, [])):
            key += "+"
        grouped.setdefault(key, []).append(model)
    return [_training(run, models, {**TAGS, **(tags or {})}) for models in grouped.values()]


def _training(run: str, models: list[ZooModel], tags: dict[str, str]) -> Training:
    description = models[0].read_json(ENTRY)
    metrics: dict[str, float] = {}
    for model in models:
        metrics |= figures(model.meta.name, model.read_json("metrics.json"))
    return Training(
        experiment=experiment_of(models[0].meta),
        run=f"{run}: {description['agent']}",
        params={"training": description["settings"], "environment": description["params"]},
        metrics=metrics,
        dataset_hash=LEARNED_IN,
        entries={model.meta.name: model.directory for model in models},
        tags={model.meta.name: dict(tags) for model in models},
    )


def figures(name: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Means of a policy's own rows beside classical controls, by names that MLflow takes."""
    found = {}
    for row in metrics.get("evaluated", []):
        if row["cc"] == name:
            where = "/".join(filter(None, (row["scenario"], row["variant"])))
            for metric, value in row["metrics"].items():
                key = re.sub(r"[^\w./ -]", "-", f"{name}/{where}/{metric}")
                found[key] = float(value["mean"])
    return found
