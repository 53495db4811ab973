"""``cczoo train sbd budget``: accuracy against measured cost, and the best that fits."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.files import write_text
from data.results import plain
from export.budget import Budget
from export.lower import lower
from features.sbd import features_of
from features.spec import Feature
from models.sbd.results.budget import PARETO
from models.sbd.train import pareto, ranking, spaces
from models.sbd.train.classifiers import SHORT, make
from models.sbd.train.job import Job
from models.sbd.windows import Windows
from models.store import replace_directory
from pipelines.output import print_json, progress
from pipelines.sbd.train_cost import Candidate, measure, size


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes
    ----------
    table : Windows
        The rows trained on.
    tried : int
        Candidates.
    front, fitting : list of Candidate
        Candidates that no other beats, and those within the budget; the best first.
    bpf : str
        Reason for which no BPF program could be loaded; empty if there is none.
    """

    table: Windows
    tried: int
    front: list[Candidate]
    fitting: list[Candidate]
    bpf: str


def search(job: Job, model: str, family: str, budget: Budget) -> Found:
    """Try models, measure their costs and choose.

    Parameters
    ----------
    job : Job
        The training, with the features and settings.
    model : str
        Key of `models.sbd.train.spaces.SPACES`.
    family : str
        Family of features; subsets are the top of their mutual information with the label.
    budget : Budget
    """
    from models.sbd.train.kept import training_rows

    table = training_rows(job)
    specs = {feature.name: feature for feature in features_of(family)}
    names = list(specs)
    seeds, near = 2, job.params.selection.neighbours
    ranked = ranking.ranking(table.matrix(names), table.y, names, seeds, near, job.params.seed)
    model_specs = pareto.candidates(model, ranking.subsets(ranked, max(spaces.SUBSETS[model]))[-1])
    scores = pareto.accuracies(table, model_specs, job.params, progress)
    found = []
    for model_spec in progress(model_specs, "fit"):
        estimator = make(model_spec.classifier, job.params.seed, model_spec.settings)
        estimator.fit(table.matrix(model_spec.features), table.y)
        features = [specs[name] for name in model_spec.features]
        form = lower(estimator, features)
        found.append(Candidate(model_spec, scores[model_spec.name], form, estimator))
    # Whatever is larger in every way and no more often right isn't worth a compilation.
    worth = pareto.front([c.gain for c in found], [size(c.form) for c in found])
    bpf = ""
    for i in progress(worth, "measure"):
        bpf = measure(found[i], table, job.params.seed) or bpf
    kept = [found[i] for i in worth]
    plain = [{k: v for k, v in c.costs.items() if "." not in k} for c in kept]
    best = [kept[i] for i in pareto.front([c.gain for c in kept], plain)]
    # A limit for one target may leave models in the running that others beat elsewhere.
    fitting = sorted((c for c in kept if not c.exceeds(budget)), key=lambda c: -c.gain)
    return Found(table, len(found), best, fitting, bpf)


def keep(job: Job, candidate: Candidate, table: Windows, family: str, budget: Budget) -> Path:
    """Write the chosen model as a zoo entry, ``model`` in the output directory."""
    from data.files import file_hash
    from export.entry import describe_fitted
    from models.card import Card, interval, render
    from models.origin import Origin
    from models.sbd.computed_with import described

    specs: dict[str, Feature] = {feature.name: feature for feature in features_of(family)}
    model_spec = candidate.model_spec
    name = f"{family}-{next(k for k, v in SHORT.items() if v == model_spec.classifier)}"
    accuracy: dict[str, Any] = {**candidate.accuracy}
    figures = {
        "budget": dict(budget.limits),
        "costs": candidate.costs,
        "estimated": candidate.estimated,
        "accuracy": accuracy,
        "headline": {},
    }
    limits = ", ".join(f"{key} {limit:g}" for key, limit in budget.limits.items())
    costs = ", ".join(f"{key} {value:g}" for key, value in candidate.costs.items())
    text = render(
        Card(
            title=name,
            summary=f"{model_spec.name}: the most accurate of its kind within a budget ({limits}).",
            facts={
                "Accuracy per window on unseen connections": interval(accuracy),
                "Costs": costs,
                "Features": ", ".join(model_spec.features),
                "Computed with": described(job.settings),
            },
            listed=True,
        )
    )
    command = shlex.join(["cczoo", *sys.argv[1:]])
    origin = Origin(family, command, job.settings, file_hash(job.features))
    found = describe_fitted(
        name,
        candidate.estimator,
        [specs[feature] for feature in model_spec.features],
        origin.meta(),
        table.matrix(model_spec.features),
        figures,
        text,
        labels=table.y,
    )
    # An entry has its model's name, which generated code takes over; the directory always one.
    replace_directory((job.out / "model").resolve(), found.contents())
    return job.out / "model"


def cheapest(front: Sequence[Candidate], budget: Budget) -> Candidate:
    """The candidate whose worst excess over a limit is the smallest."""

    def worst(candidate: Candidate) -> float:
        return max(
            candidate.costs.get(key, math.inf) / limit if limit else math.inf
            for key, limit in budget.limits.items()
        )

    return min(front, key=lambda c: (worst(c), sum(c.costs.values())))


def run_search(job: Job, model: str, family: str, budget: Budget, as_json: bool) -> int:
    """Search, write ``pareto.json``, ``pareto.svg`` and ``model``; returns 1 if nothing fits."""
    from pipelines.reporting.sbd import pareto

    found = search(job, model, family, budget)
    chosen = found.fitting[0] if found.fitting else None
    nearest = cheapest(found.front, budget)
    result = {
        "model": model,
        "family": family,
        "budget": dict(budget.limits),
        "windows": len(found.table),
        "dropped": job.dropped.described(),
        "connections": int(np.unique(found.table.group).size),
        "tried": found.tried,
        "bpf": found.bpf or "measured",
        "front": [{**c.described(), "exceeds": c.exceeds(budget)} for c in found.front],
        "chosen": chosen and chosen.described(),
        "nearest": nearest.described(),
    }
    report = PARETO.write(job.out, result)
    write_text(job.out / "pareto.svg", pareto.draw(report))
    if chosen:
        keep(job, chosen, found.table, family, budget)
    if as_json:
        print_json(plain(report))
    else:
        pareto.show(report)
    if not chosen:
        limits = ",".join(f"{key}={limit:g}" for key, limit in budget.limits.items())
        print(
            f"nothing fits {limits}; nearest: {nearest.model_spec.name}: "
            f"{'; '.join(nearest.exceeds(budget))}",
            file=sys.stderr,
        )
        return 1
    if not as_json:
        where = shlex.quote(str(job.out / "model"))
        print(f"{where}: {chosen.model_spec.name}")
        print(f"export it with: cczoo export {where} -t c --out BUNDLE", file=sys.stderr)
    return 0
