"""The models that are compared, and those that are kept: names, features, hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.sbd.evaluate.splits import ModelSpec
from models.sbd.params import Params
from models.sbd.train.classifiers import SHORT

CORRELATION = "Corr"
"""The second family's column that holds the plain correlation over the whole window."""

FAMILY_NAMES = ("smartsbd", "smartsbd-plus")

KERNEL = "smartsbd-plus-kernel"
"""Family of the features that integers compute cheaply, and the name of its one model."""

BOUNDS = {KERNEL: 1.0}
"""Model -> how many times its limit the state of its verdicts may be. In a kernel bottlenecks move:
the state holds no more than a verdict needs."""


def family_of(name: str) -> str:
    """Family of the features that a model of these names has."""
    if name == KERNEL:
        return KERNEL
    return "smartsbd-plus" if name.startswith("smartsbd-plus") else "smartsbd"


def paper(
    features: Sequence[str],
    found: Mapping[str, Mapping[str, Any]],
    params: Params,
    suffix: str = "",
) -> list[ModelSpec]:
    """The paper's classifiers with the hyperparameters that the search found.

    Parameters
    ----------
    features : sequence of str
        The subset, or all 18.
    found : mapping
        Classifier -> its settings, of `models.sbd.train.search.best`.
    params : Params
        Bounds of what is exported.
    suffix : str
        Appended to the names.
    """
    settings = {name: dict(one) for name, one in found.items()}
    tree = settings["decision-tree"]
    forest = settings["random-forest"]
    # What goes into a kernel is bounded, whatever the search would like.
    tree["depth"] = min(tree["depth"], params.zoo_depth)
    forest |= {"depth": min(forest["depth"], params.zoo_depth), "trees": params.zoo_trees}
    tree["leaf"] = params.zoo_leaf
    return [
        ModelSpec(
            f"smartsbd-{short}{suffix}", SHORT[short], tuple(features), settings[SHORT[short]]
        )
        for short in ("dt", "rf", "svm", "lr")
    ]


def alone(feature: str) -> ModelSpec:
    """A small tree on the one feature that says most when the conditions are unknown.

    Under conditions that training didn't have, RTT_SD_Ratio alone does better than any larger
    subset of the 18, whose further members depend on RTTs and rates themselves.
    """
    return ModelSpec("smartsbd-dt-top1", "decision-tree", (feature,), {"depth": 5, "leaf": 20})


def plus(features: Sequence[str], params: Params) -> list[ModelSpec]:
    """Candidates for the general model."""
    depth, trees = params.zoo_depth, params.plus.forest_trees
    settings: dict[str, dict[str, Any]] = {
        "dt": {"depth": min(6, depth), "leaf": 20},
        "rf": {"depth": depth, "trees": trees, "leaf": 3},
        "lr": {"c": 1.0},
        "gb": {"trees": params.plus.boosting_trees, "depth": 3, "rate": 0.08, "leaf": 20},
        "mlp": {"width": 16, "layers": 2},
    }
    return [
        ModelSpec(f"smartsbd-plus-{short}", SHORT[short], tuple(features), one)
        for short, one in settings.items()
    ]


def kernel(features: Sequence[str]) -> ModelSpec:
    """The general model for a kernel: of the candidates the weighted sum, the cheapest there."""
    return ModelSpec(KERNEL, SHORT["lr"], tuple(features), {"c": 1.0})


def threshold(column: str = CORRELATION) -> ModelSpec:
    """The baseline that every learned model has to beat."""
    return ModelSpec("threshold", "threshold", (column,))
