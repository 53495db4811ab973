"""Train policies from logs, estimate each from the same logs, and play each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from data.strict import Strict
from models.offline import evaluation, methods, training, worth
from models.offline.acting import Acting, opened
from models.offline.aside import Aside
from models.offline.params import Evaluation
from models.offline.source import Source
from models.offline.support import Support
from pipelines.offline.given import KEPT
from pipelines.studies.estimates import logs, truth
from pipelines.studies.estimates.logs import CONTROLS, Size

NETWORK = {"subflow_width": 16, "width": 32, "heads": 2, "context": 4}
"""Smaller than by default: the study has some thirty networks."""


class Effort(Strict):
    """How much is learned."""

    size: Size = Size()
    methods: tuple[str, ...] = ("bc", "cql", "iql")
    updates: int = Field(400, ge=1)
    """How long a policy learns."""
    evaluation: dict[str, Any] = Field(
        default_factory=lambda: {"updates": 400, "fits": 1, "spacing": 32}
    )
    held_out: float = Field(0.25, ge=0, lt=1)
    network: dict[str, Any] = Field(default_factory=lambda: dict(NETWORK))


def rows(kind: str, seed: int, effort: Effort, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for each policy: the figures of `models.offline.worth.figures` and the truth.

    Parameters
    ----------
    kind : str
        One of `logs.KINDS`.
    seed : int
        Draws the scenarios, and begins the networks.
    effort : Effort
    folder : Path
        Where logs and policies are kept meanwhile.
    """
    path = logs.write(kind, folder, effort.size, seed)
    common = {**effort.network, "held_out": effort.held_out, "seed": seed}
    settings = Evaluation.parse({**common, **effort.evaluation}, "evaluation")
    source = Source(path, settings)
    aside = Aside.of(source, settings, "first" if kind == CONTROLS else "every")
    support = Support.of(source.runs(False), len(source.about.actions))
    who = evaluation.cloned(path, settings)
    behaviour = aside.taken(aside.odds(who))
    known = evaluation.fitted(who, path, settings, None)
    names = logs.CLASSICAL if kind == CONTROLS else tuple(logs.SCRIPTS)
    for policy in _policies(path, settings, effort, folder, names):
        fits = []
        for number in range(settings.fits):
            own = settings.model_copy(update={"seed": seed + number})
            resample = own.seed if settings.fits > 1 else None
            fits.append(evaluation.fitted(policy, path, own, resample))
        found = worth.figures(policy, fits, behaviour, known, aside, support)
        paid = truth.played(truth.acting(policy, seed), aside, kind)
        yield {
            **found,
            "kind": kind,
            "seed": seed,
            "refused": worth.untrusted(found, settings),
            "beats": worth.checked(found, settings)["verdict"]["beats"],
            "truth": truth.summed(paid, settings.gamma, aside.length),
            "truth_short": truth.summed(paid, settings.gamma, settings.horizon),
        }


def _policies(
    path: Path, settings: Evaluation, effort: Effort, folder: Path, names: tuple[str, ...]
) -> Iterator[Acting]:
    """Each policy: what was learned, then a clone of each one that decided."""
    shared = {key: getattr(settings, key) for key in KEPT}
    for method in effort.methods:
        own = methods.settings(method, {**shared, "updates": effort.updates})
        out = folder / f"{path.stem}-{method}"
        training.learn(method, Source(path, own), out)
        policy = opened(out)
        policy.name = method
        yield policy
    for name in names:
        yield evaluation.cloned(path, settings, name)


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """How near estimates of a kind of logs came, and whether they rank policies rightly.

    Returns
    -------
    dict
        For ``fqe`` and ``wis``: the mean over seeds of Spearman's rank correlation with the truth,
        its least, ``error``: mean absolute error, ``spread``: the deviation of the truth over
        policies, ``within``: share of intervals that hold the truth, ``refused``: share.
    """
    result = {}
    for name, real in (("fqe", "truth"), ("wis", "truth_short")):
        ranks, errors, within = [], [], []
        for seed in sorted({row["seed"] for row in found}):
            own = [row for row in found if row["seed"] == seed and row[name] is not None]
            if len(own) > 2:
                ranks.append(_rank([r[name]["mean"] for r in own], [r[real] for r in own]))
            errors += [row[name]["mean"] - row[real] for row in own]
            within += [row[name]["low"] <= row[real] <= row[name]["high"] for row in own]
        result[name] = {
            "rank": float(np.mean(ranks)) if ranks else None,
            "least_rank": float(min(ranks)) if ranks else None,
            "error": float(np.abs(errors).mean()) if errors else None,
            "bias": float(np.mean(errors)) if errors else None,
            "spread": float(np.std([row[real] for row in found])),
            "within": float(np.mean(within)) if within else None,
            "refused": float(np.mean([name in row["refused"] for row in found])),
        }
    return result


def _rank(one: list[float], other: list[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)
