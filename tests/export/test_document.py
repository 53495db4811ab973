"""The JSON form: the same after a round trip, and refused whenever anything is odd."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forms import SPECS, forests, nodes, trees

from data.errors import UserError
from export.document import dumps, loads, model_hash
from export.forms.linear import Linear
from export.forms.nodes import MAX_DEPTH, Nodes
from export.forms.tree import Tree
from export.passes.tidy import tidy_nodes

TREE = Tree(SPECS, ("NSB", "SB"), 7, Nodes((1, -1, 0, -1, -1), (5, 1, -3, 2, 9), (2, 0, 4, 0, 0)))
LINEAR = Linear(SPECS, ("NSB", "SB"), 0, (1, -2, 3, 2**20), -5, 4)


@settings(max_examples=60, deadline=None)
@given(trees | forests)
def test_round_trip(form):
    text = dumps(form)
    assert loads(text, "x") == form
    assert dumps(loads(text, "x")) == text


def test_linear_round_trip_and_hash():
    assert loads(dumps(LINEAR), "x") == LINEAR
    assert model_hash(LINEAR) != model_hash(TREE)


def test_text_is_diffable():
    before = dumps(TREE).splitlines()
    moved = Tree(
        SPECS, TREE.labels, 7, Nodes(TREE.nodes.feature, (6, 1, -3, 2, 9), (2, 0, 4, 0, 0))
    )
    after = dumps(moved).splitlines()
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        ("  [1, 5, 2],", "  [1, 6, 2],")
    ]


def changed(**keys):
    return json.dumps({**json.loads(dumps(TREE)), **keys})


def feature(**keys):
    listed = json.loads(dumps(TREE))["features"]
    return changed(features=[{**listed[0], **keys}, *listed[1:]])


DEEP = [[0, 0, 2 * MAX_DEPTH + 4 - i] for i in range(MAX_DEPTH + 2)] + [[0]] * (MAX_DEPTH + 3)
MALFORMED = {
    "not JSON": "{",
    "no object": "[]",
    "empty": "",
    "binary": b"\xff\xfe\x00",
    "nested to death": "[" * 100_000,
    "an endless number": changed(cut=0).replace('"cut": 0', '"cut": ' + "9" * 5000),
    "NaN": changed(cut=0).replace('"cut": 0', '"cut": NaN'),
    "Infinity": feature(high=1.0).replace('"high": 1.0', '"high": Infinity'),
    "an overflowing number": feature(high=1.0).replace('"high": 1.0', '"high": 1e999'),
    "a key twice": changed(cut=0).replace('"cut": 0', '"cut": 0, "cut": 1'),
    "an unknown key": changed(extra=1),
    "another format": changed(format="pickle"),
    "another version": changed(version=2),
    "an unknown kind": changed(kind="tre"),
    "kind of a wrong type": changed(kind=["tree"]),
    "another kind's body": changed(kind="linear"),
    "cut as text": changed(cut="7"),
    "cut as float": changed(cut=7.0),
    "cut as bool": changed(cut=True),
    "cut too large": changed(cut=2**63),
    "one label": changed(labels=["SB"]),
    "labels of numbers": changed(labels=[0, 1]),
    "no features": changed(features=[]),
    "features not a list": changed(features={}),
    "a feature's name with code": feature(name="x; system("),
    "a feature's name twice": feature(name="f1"),
    "a feature without a unit": feature(unit=None),
    "scale 0": feature(scale=0),
    "scale as float": feature(scale=1.5),
    "an empty range": feature(low=3.0, high=3.0),
    "a range beyond 32 bits": feature(high=1e12),
    "no nodes": changed(nodes=[]),
    "nodes not a list": changed(nodes=7),
    "an even number of nodes": changed(nodes=[[0, 1, 2], [1]]),
    "a node of two": changed(nodes=[[0, 1]]),
    "a feature out of range": changed(nodes=[[4, 1, 2], [1], [2]]),
    "a negative feature": changed(nodes=[[-1, 1, 2], [1], [2]]),
    "a threshold beyond 32 bits": changed(nodes=[[0, 2**31, 2], [1], [2]]),
    "a threshold as float": changed(nodes=[[0, 1.5, 2], [1], [2]]),
    "a leaf as bool": changed(nodes=[[True]]),
    "a cycle": changed(nodes=[[0, 1, 0], [1], [2]]),
    "a child of itself": changed(nodes=[[0, 1, 2], [1], [0, 1, 2], [1], [1]]),
    "a child beyond the end": changed(nodes=[[0, 1, 9], [1], [2]]),
    "two parents": changed(nodes=[[0, 1, 4], [0, 2, 4], [1], [2], [3]]),
    "an orphan": changed(nodes=[[0, 1, 2], [1], [2], [3], [4]]),
    "too deep": changed(nodes=DEEP),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_is_refused_with_one_line(name):
    with pytest.raises(UserError) as caught:
        loads(MALFORMED[name], "model.json")
    assert str(caught.value).startswith("model.json: ")
    assert "\n" not in str(caught.value)


def test_a_sum_that_could_overflow_is_refused():
    tree = json.loads(dumps(LINEAR))
    with pytest.raises(UserError, match="overflow"):
        loads(json.dumps({**tree, "weights": [2**31 - 1] * 4}), "x")


@settings(max_examples=100, deadline=None)
@given(trees | forests, st.data())
def test_a_damaged_document_is_refused_or_still_a_form(form, data):
    text = dumps(form)
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.sampled_from(["", "0", "-", "9", "[", "]", ",", '"', " 1", "e9", "\x00"]))
    try:
        form = loads(text[:at] + put + text[at + 1 :], "x")
    except UserError:
        return
    # What was let through must be safe to run.
    form.evaluate(np.zeros((3, len(form.features)), dtype=np.int64))


@settings(max_examples=60, deadline=None)
@given(nodes, st.integers(0, 2**32 - 1))
def test_tidying_keeps_every_answer_in_range(given_nodes, seed):
    tidied = tidy_nodes(given_nodes, SPECS)
    assert len(tidied) <= len(given_nodes)
    rng = np.random.default_rng(seed)
    near = np.array([v for v in given_nodes.value if abs(v) < 2 * 10**9] or [0])
    x = rng.choice(near, (300, 4)) + rng.integers(-1, 2, (300, 4))
    x = np.clip(x, -2 * 10**9, 2 * 10**9)
    before = given_nodes.arrays[1][given_nodes.reach(x)]
    assert (tidied.arrays[1][tidied.reach(x)] == before).all()
    assert loads(dumps(Tree(SPECS, ("a", "b"), 0, tidied)), "x").nodes == tidied
