"""Small models are compared by accuracy and cost, to find those that no other beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from data.errors import unknown_name
from models.parallel import Progress, silent
from models.sbd.evaluate.splits import ModelSpec, predict, shuffle_splits
from models.sbd.params import THRESHOLD, Params
from models.sbd.train.classifiers import SHORT
from models.sbd.train.spaces import SPACES, SUBSETS
from models.sbd.windows import Windows
from models.stats.intervals import Interval, over_splits


def candidates(model: str, ranked: Sequence[str]) -> list[ModelSpec]:
    """All models to try.

    Parameters
    ----------
    model : str
        Key of :data:`models.sbd.train.spaces.SPACES`.
    ranked : sequence of str
        Features, the most informative first.

    Raises
    ------
    UserError
        When there is no such model, with the nearest.
    """
    if model not in SPACES:
        raise unknown_name("model", model, SPACES)
    space = SPACES[model]
    found = []
    for count in dict.fromkeys(min(k, len(ranked)) for k in SUBSETS[model]):
        for values in product(*space.values()):
            settings = dict(zip(space, values, strict=True))
            text = " ".join(f"{key} {value}" for key, value in settings.items())
            name = f"{model}, {count} feature{'s' if count > 1 else ''}, {text}"
            found.append(ModelSpec(name, SHORT[model], tuple(ranked[:count]), settings))
    return found


def accuracies(
    table: Windows, model_specs: Sequence[ModelSpec], params: Params, progress: Progress = silent
) -> dict[str, Interval]:
    """Accuracy per window by shuffle splits of whole connections.

    Parameters
    ----------
    table : Windows
        Rows with labels; stratified by data set and label.
    model_specs : sequence of ModelSpec
    params : Params
        Splits, seed, confidence, workers.
    progress : callable
        See `models.parallel`.

    Returns
    -------
    dict
        ModelSpec's name -> interval over the splits (`models.stats.intervals.over_splits`).
    """
    everything = np.ones(len(table), dtype=np.bool_)
    todo = shuffle_splits(table, everything, ~everything, params.protocol, "budget", params.seed)
    numbered = [replace(model_spec, name=str(i)) for i, model_spec in enumerate(model_specs)]
    answers = predict(table, numbered, todo, params.seed, params.workers, progress)
    right: dict[str, list[float]] = {model_spec.name: [] for model_spec in model_specs}
    for (model, _), part in sorted(answers.group_by("model", "split")):
        rows = part["row"].to_numpy()
        hits = (part["probability"].to_numpy() > THRESHOLD) == (table.y[rows] == 1)
        right[model_specs[int(str(model))].name].append(float(hits.mean()))
    share = params.protocol.test_share
    return {name: over_splits(shares, share, params.confidence) for name, shares in right.items()}


def front(gains: Sequence[float], costs: Sequence[Mapping[str, float]]) -> list[int]:
    """Points that no other beats.

    Parameters
    ----------
    gains : sequence of float, length N
        Larger is better.
    costs : sequence of mapping, length N
        By kind; smaller is better. Only kinds that both of two points have are compared.

    Returns
    -------
    list of int
        Indices of points that no other equals or betters in everything and betters in something,
        by falling gain; of equal points the first alone.
    """
    kept = []
    for i, (gain, cost) in enumerate(zip(gains, costs, strict=True)):
        beaten = False
        for j, (other, theirs) in enumerate(zip(gains, costs, strict=True)):
            shared = cost.keys() & theirs.keys()
            no_worse = other >= gain and all(theirs[key] <= cost[key] for key in shared)
            better = other > gain or any(theirs[key] < cost[key] for key in shared)
            if j != i and no_worse and (better or j < i):
                beaten = True
                break
        if not beaten:
            kept.append(i)
    return sorted(kept, key=lambda i: (-gains[i], i))
