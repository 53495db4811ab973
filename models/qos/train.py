"""Train the network of contexts, compare structures and discretisations, keep the paper's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from data.files import file_hash
from models.origin import Origin
from models.qos import compare, lookup, structure, table
from models.qos.discretise import GaussianDiscretizer
from models.qos.judged import TEST, Sessions, outcome_of
from models.qos.network import Network, fitted
from models.qos.params import Params
from models.qos.results import QOS
from models.qos.table import FEATURES, Borders
from models.qos.variables import SETTING, VARIABLES, of_group
from models.trained import Job, Test, Trained

NAME = "qos-bn"
SAMPLE = 400
"""Held-out sessions that are kept with an entry."""

Float = NDArray[np.float64]
Ints = NDArray[np.int64]


def held_out(count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Sessions that training doesn't see: bool array [count]."""
    return np.asarray(np.random.default_rng(seed).permutation(count) < round(share * count))


def train(job: Job) -> Iterable[Trained]:
    """Discretise, compare, fit the paper's structure; writes ``qos.json``."""
    import pandas as pd

    params = cast(Params, job.params)
    raw = table.read(job.data)
    if len(raw) < 100:
        raise UserError(f"{job.data}: {len(raw)} sessions, 100 at least are needed: simulate more")
    x, test = table.scaled(raw), held_out(len(raw), params.test_share, params.seed)
    gaussians = GaussianDiscretizer(params.terms).fit(x[~test])
    borders = table.borders(gaussians)
    rows = borders.values(raw)
    prior = params.equivalent_sample_size
    known = pd.DataFrame(rows[~test], columns=list(VARIABLES))
    structures = {
        structure.KEPT: structure.paper(),
        "chain": structure.chain(),
        "learned": structure.learned(known, params.most_parents),
    }
    networks: dict[str, Network] = {}
    for name in job.progress(structures, "fit structures", len(structures)):
        networks[name] = fitted(structures[name], rows[~test], borders.cardinality, prior)
    kept = networks[structure.KEPT]
    beside = kept.log_likelihood(rows[test])
    structure_rows = [
        compare.structure_row(name, network, structures[name], rows[test], beside, params.resamples)
        for name, network in networks.items()
    ]
    result = {
        "sessions": len(raw),
        "held_out": int(test.sum()),
        "edges": {name: list(edges) for name, edges in borders.of.items()},
        "rmse": {n: e.tolist() for n, e in zip(VARIABLES, gaussians.rmse_, strict=True)},
        "structures": structure_rows,
        "discretisers": _discretisers(rows, x, test, borders, params),
        "learned": [list(edge) for edge in structures["learned"]],
    }
    QOS.write(job.out, result)
    yield _trained(job, params, kept, borders, raw, rows, test, structure_rows[0])


def _discretisers(
    rows: Ints, x: Float, test: NDArray[np.bool_], borders: Borders, params: Params
) -> list[dict[str, Any]]:
    counts = list(borders.cardinality.values())
    edges, prior = structure.paper(), params.equivalent_sample_size
    values = {"sum of Gaussians": rows}
    for name, strategy in compare.OTHERS.items():
        values[name] = compare.other_values(x, test, counts, strategy)
    found = {name: compare.on_cells(v, x, test, edges, prior) for name, v in values.items()}
    own = found["sum of Gaussians"]
    return [
        {
            "name": name,
            "values": int(sum(values[name].max(axis=0) + 1)),
            "log_likelihood": compare.interval(likely, params.resamples),
            "more": compare.interval(likely - own, params.resamples),
        }
        for name, likely in found.items()
    ]


def _trained(
    job: Job,
    params: Params,
    network: Network,
    borders: Borders,
    raw: Float,
    rows: Ints,
    test: NDArray[np.bool_],
    judged: Mapping[str, Any],
) -> Trained:
    settings = [list(VARIABLES).index(name) for name in of_group(SETTING)]
    inside = np.clip(raw[:, settings], FEATURES[0].low, FEATURES[0].high)
    outcome = outcome_of(rows, borders)
    labels = lookup.labels(borders)
    sample = np.flatnonzero(test)[:SAMPLE]
    kept = Sessions(inside[sample], outcome[sample])

    def content(answers: Mapping[str, NDArray[Any]]) -> bytes:
        scores = {
            file: {**_mean(kept.worth(found)), "sessions": len(sample)}
            for file, found in answers.items()
        }
        stored = {"values": kept.settings.tolist(), "outcome": kept.outcome.tolist()}
        return json.dumps({**stored, "scores": scores}).encode()

    estimator = lookup.tree(network, borders)
    every = Sessions(inside[test], outcome[test])
    worth = compare.interval(every.worth(estimator.predict(inside[test])), params.resamples)
    origin = Origin("qos", job.command, {}, file_hash(job.data))
    metrics = {
        "headline": {
            "test": {"log_probability": worth["mean"]},
            "calibration_error": dict(judged["errors"]),
        },
        "log_probability": worth,
        "log_likelihood": judged["log_likelihood"],
        "sessions": len(raw),
    }
    files = {
        "advice.json": lookup.advice_file(network, borders, NAME),
        "network.json": lookup.network_file(network),
    }
    return Trained(
        name=NAME,
        model=estimator,
        features=FEATURES,
        meta={
            **origin.meta(),
            "labels": labels,
            "output": {"kind": "scores", "units": ["1"] * len(labels)},
        },
        observations=inside[~test],
        metrics=metrics,
        test=Test(TEST, kept.settings, content),
        files=files,
        card={
            "origin": origin, "params": params, "borders": borders, "judged": judged,
            "worth": worth, "labels": labels, "sessions": (len(raw), int(test.sum())),
        },
    )  # fmt: skip


def _mean(worth: Float) -> Mapping[str, Any]:
    return {**compare.interval(worth, 1000)}
