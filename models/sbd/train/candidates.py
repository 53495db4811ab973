"""Every model that a training compares, as the search has left its settings."""

from __future__ import annotations

from models.sbd.evaluate.splits import Recipe
from models.sbd.results.search import BEST, MI
from models.sbd.train import recipes
from models.sbd.train.job import Job


def all_recipes(job: Job) -> list[Recipe]:
    """Every model of the comparison, as the search left its hyperparameters."""
    best = {name: one.settings for name, one in BEST.read(job.out).items()}
    subsets = MI.read(job.out).subsets
    top = subsets[min(job.params.protocol.top_k, len(subsets)) - 1]
    family = job.names
    known = recipes.paper(top, best, job.params)
    known += recipes.paper(family["smartsbd"], best, job.params, "-all")[:3]
    known.append(recipes.alone(top[0]))
    known += recipes.plus(family["smartsbd-plus"], job.params)
    if recipes.CORRELATION in family["smartsbd-plus"]:
        known.append(recipes.threshold())
    return known
