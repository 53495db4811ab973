"""Measure the costs of a trained model: it is lowered, exported and proved like any bundle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from data.errors import UserError
from export.budget import FIGURES, Budget, cost, over
from export.forms.forest import Forest
from export.ir import Form
from export.params import Options, VerifyParams
from export.proof import prove
from export.source import Source
from features.sbd import settings_for
from models.sbd.evaluate.splits import ModelSpec
from models.sbd.params import THRESHOLD
from models.sbd.train.classifiers import probability
from models.sbd.windows import Windows
from models.stats.intervals import Interval

FIRST = {"insns": "bpf"}
"""Figure -> target whose cost counts if a limit names none; it is C for all other figures."""
INSNS_PER_NODE = 2.5
"""Estimate used if no BPF program can be loaded: trees of depth 6 to 10 as nested ifs took
2.3 to 3.1 verified instructions per node."""
SAMPLE = 64


@dataclass
class Candidate:
    """A model that was tried.

    Attributes
    ----------
    model_spec : ModelSpec
    accuracy : Interval
        Per window, on connections that training didn't see.
    form : Form
        The form of the model fitted on all rows.
    estimator : object
        That model.
    costs : dict
        By figure of a budget, ``target.figure`` included.
    estimated : list of str
        Figures that could not be measured.
    """

    model_spec: ModelSpec
    accuracy: Interval
    form: Form
    estimator: Any
    costs: dict[str, float] = field(default_factory=dict)
    estimated: list[str] = field(default_factory=list)

    @property
    def gain(self) -> float:
        """Mean accuracy."""
        return float(self.accuracy["mean"] or 0.0)

    def exceeds(self, budget: Budget) -> list[str]:
        """Lines on the costs above the budget and by how much; empty if the model fits."""
        lines = []
        for key, limit in budget.limits.items():
            figure = key.rpartition(".")[2]
            if key not in self.costs:
                lines.append(f"{key}: can't be measured here: {FIGURES[figure].made_by}")
            elif self.costs[key] > limit:
                lines.append(over(figure, self.costs[key], limit))
        return lines

    def described(self) -> dict[str, Any]:
        """Plain data for ``pareto.json``."""
        return {
            "name": self.model_spec.name,
            "classifier": self.model_spec.classifier,
            "features": list(self.model_spec.features),
            "settings": dict(self.model_spec.settings),
            "accuracy": dict(self.accuracy),
            "kind": self.form.kind,
            **size(self.form),
            "costs": self.costs,
            "estimated": self.estimated,
        }


def size(form: Form) -> dict[str, float]:
    """Sizes with which a form's costs grow; a linear form has one weight per feature."""
    trees = getattr(form, "trees", ())
    if not trees:
        return {"nodes": 0, "steps": len(form.features)}
    return {
        "nodes": sum(map(len, trees)),
        "steps": sum(max(nodes.depths) for nodes in trees),
    }


def measure(candidate: Candidate, table: Windows, seed: int) -> str:
    """Fill in a candidate's costs by proving it; returns why BPF couldn't be run, or ""."""
    form = candidate.form
    forest = isinstance(form, Forest)
    options = Options.parse(
        {"layout": "array" if forest else "if-else", "bpf": "map" if forest else "if-else"},
        "options",
    )
    rows = np.unique(np.linspace(0, len(table) - 1, SAMPLE).astype(np.int64))
    values = table.matrix(candidate.model_spec.features)[rows]
    source = Source(
        name="candidate",
        version="1",
        family="smartsbd",
        kind=form.kind,
        features=form.features,
        feature_settings=settings_for("smartsbd", {}),
        labels=("NSB", "SB"),
        threshold=THRESHOLD,
        form=form,
        no_form="",
        onnx=b"",
        values=values,
        probability=probability(candidate.estimator, values),
    )
    proof = prove(source, ["c", "bpf"], "cczoo train", options, VerifyParams(random=200, seed=seed))
    report = proof.report
    parts = {part["target"]: part for part in report["targets"]}
    wrong = [f"{t}: {p['mismatches']} mismatches" for t, p in parts.items() if p["mismatches"]]
    if wrong or report["problems"]:
        raise RuntimeError(f"{candidate.model_spec.name}: {'; '.join(wrong or report['problems'])}")
    if "error" in parts["c"]:
        raise UserError(f"costs are measured by compiling: {parts['c']['error']}")
    for target, part in parts.items():
        for figure in FIGURES:
            found = cost(part, figure)
            if found is not None:
                candidate.costs[f"{target}.{figure}"] = found
                if target == FIRST.get(figure, "c"):
                    candidate.costs[figure] = found
    if "insns" not in candidate.costs and not forest:
        estimate = math.ceil(INSNS_PER_NODE * max(size(form)["nodes"], size(form)["steps"]))
        candidate.costs["insns"] = estimate
        candidate.estimated.append("insns")
    return str(parts["bpf"].get("error", ""))
