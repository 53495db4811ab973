"""Entries of strangers: what a description or its weights get wrong is refused in one line."""

import json
from dataclasses import replace

import numpy as np
import pytest
from random_policies import policy

from data.errors import UserError
from models import store
from models.policies import ENTRY, WEIGHTS, entry
from models.policies.identity import identity


def written(folder, environment="macc", kinds=(0,), change=None, weights=None):
    """An entry whose description is changed, or its weights."""
    whole = policy(environment)
    one = whole.only("x", kinds)
    if weights is not None:
        one = replace(one, weights=weights(dict(one.weights)))
    files = entry.files(one)
    if change is not None:
        tree = json.loads(files[ENTRY])
        change(tree)
        files[ENTRY] = json.dumps(tree).encode()
    assert files.keys() == {ENTRY, WEIGHTS}
    return store.load(store.save(folder / "x", entry.meta(one, "test"), files).directory)


@pytest.mark.parametrize("environment", ["tcco", "nuwa", "macc"])
def test_what_was_written_is_read_again(tmp_path, environment):
    own = policy(environment).only("x", (0,))
    found = entry.of_entry(written(tmp_path, environment))
    assert found.layout == own.layout
    assert found.params == own.params
    assert all((found.weights[name] == own.weights[name]).all() for name in own.weights)


def test_a_training_and_its_entry_are_one_player(tmp_path):
    """Whatever order a file keeps settings in, and though its lists were tuples."""
    own = policy("macc").only("x", (0,))
    settings = {**dict(reversed([*own.settings.items()])), "hidden": (8, 8)}
    found = entry.of_entry(written(tmp_path))
    assert identity(replace(own, settings=settings)) == identity(found)
    assert identity(replace(own, settings={**settings, "width": 17})) != identity(found)


LAST = "net.kinds.0.head.bias"


def without(weights):
    del weights[LAST]
    return weights


WEIGHED = {
    "missing": (without, f"{LAST} is missing"),
    "not a number": (lambda w: w | {LAST: w[LAST] * np.float32(np.nan)}, "no finite number"),
    "whole": (lambda w: w | {LAST: w[LAST].astype(np.int32)}, "no finite number"),
    "more": (lambda w: w | {"net.more": w[LAST]}, "net.more is unknown"),
    "another kind's": (
        lambda w: w | {"net.kinds.1.head.bias": policy("macc").weights["net.kinds.1.head.bias"]},
        "net.kinds.1.head.bias is unknown",
    ),
    "longer": (lambda w: w | {LAST: np.zeros(9, np.float32)}, r"is \[9\], the network has \[4\]"),
    "scales": (
        lambda w: w | {"standardise.scale": np.ones((1, 6), np.float32)},
        r"standardise.scale is \[1, 6\], the network has \[2, 6\]",
    ),
}


@pytest.mark.parametrize("which", WEIGHED)
def test_weights_that_are_not_the_networks(tmp_path, which):
    change, message = WEIGHED[which]
    with pytest.raises(UserError, match=message) as refused:
        entry.of_entry(written(tmp_path, weights=change))
    assert "\n" not in str(refused.value)


DESCRIBED = {
    "kind": (lambda t: t.update(kind=7), "no parts of kind 7"),
    "no params": (lambda t: t.update(params={}), "params.observation"),
    "a wrong param": (lambda t: t["params"].update(max_cwnd=0), "params.max_cwnd"),
    "an unknown param": (lambda t: t["params"].update(cwnd=3), "unknown key"),
    "no layout": (lambda t: t.update(layout={}), "layout.kinds"),
    "another layout": (lambda t: t["layout"].update(action_counts=[3, 3]), "no such parts"),
    "no such part": (lambda t: t["layout"].update(kinds=[1, 1]), "no such parts"),
    "no sizes": (lambda t: t["settings"].pop("hidden"), "settings: hidden"),
    "huge": (lambda t: t["settings"].update(hidden=[10**9]), "settings: hidden.0"),
    "wide": (lambda t: t["settings"].update(hidden=[8192, 8192]), "the network has"),
}


@pytest.mark.parametrize("which", DESCRIBED)
def test_descriptions_that_do_not_fit(tmp_path, which):
    change, message = DESCRIBED[which]
    with pytest.raises(UserError, match=message) as refused:
        entry.of_entry(written(tmp_path, change=change))
    assert "\n" not in str(refused.value)


def test_subflows_are_those_of_the_params(tmp_path):
    model = written(tmp_path, "tcco", change=lambda t: t["params"].update(subflows=3))
    with pytest.raises(UserError, match="2 parts, by its params it has 3"):
        entry.of_entry(model)


def test_heads_divide_the_width(tmp_path):
    model = written(tmp_path, "tcco", change=lambda t: t["settings"].update(heads=3))
    with pytest.raises(UserError, match="multiple of heads"):
        entry.of_entry(model)
