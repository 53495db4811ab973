"""Every model that a training compares, as the search has left its settings."""

from __future__ import annotations

from features.sbd import features_of
from models.sbd.evaluate.splits import ModelSpec
from models.sbd.results.search import BEST, MI
from models.sbd.train import model_specs
from models.sbd.train.job import Job


def all_model_specs(job: Job) -> list[ModelSpec]:
    """Every model of the comparison, as the search left its hyperparameters."""
    best = {name: one.settings for name, one in BEST.read(job.out).items()}
    subsets = MI.read(job.out).subsets
    top = subsets[min(job.params.protocol.top_k, len(subsets)) - 1]
    family = job.names
    known = model_specs.paper(top, best, job.params)
    known += model_specs.paper(family["smartsbd"], best, job.params, "-all")[:3]
    known.append(model_specs.alone(top[0]))
    known += model_specs.plus(family["smartsbd-plus"], job.params)
    known.append(model_specs.kernel([f.name for f in features_of(model_specs.KERNEL)]))
    if model_specs.CORRELATION in family["smartsbd-plus"]:
        known.append(model_specs.threshold())
    return known
