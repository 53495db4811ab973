"""Passes: smaller forms, how much they change, and what the manifest says about it."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forms import SPECS, forests, trees
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from data.errors import UserError
from export.document import dumps, loads, model_hash
from export.fixed import to_integers
from export.forms.forest import Forest
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.lower import lower
from export.params import Options
from export.passes import PASSES, bits, depth, nodes, surroundings, vectors
from pipelines.cli import main


@pytest.fixture(scope="module")
def grown(table, features):
    """A tree and a forest that know the table by heart, and the table's integers."""
    x, y = table
    tree = DecisionTreeClassifier(max_depth=12, random_state=0).fit(x, y)
    forest = RandomForestClassifier(5, max_depth=9, random_state=0).fit(x, y)
    return lower(tree, features), lower(forest, features), to_integers(x, features)


def changed(a, b, x):
    return float((a.evaluate(x).classes != b.evaluate(x).classes).mean())


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_depth_is_bounded_and_leaves_are_means_of_what_reaches_them(limit, grown):
    for form in grown[:2]:
        x = grown[2]
        small = depth.smaller(form, limit, x)
        for before, after in zip(form.trees, small.trees, strict=True):
            assert max(after.depths) <= limit
            leaf = after.reach(x)
            was = before.arrays[1][before.reach(x)]
            for at in np.unique(leaf):
                mean = was[leaf == at].mean()
                # Tidying may join two leaves of one value, each rounded on its own.
                assert abs(after.value[at] - mean) <= 0.5


def test_depth_beyond_the_trees_changes_nothing(grown):
    form, _, x = grown
    assert depth.smaller(form, 12, x) == form


@pytest.mark.parametrize("limit", [5, 31, 151])
def test_nodes_are_bounded_and_more_of_them_change_less(limit, grown):
    for form in grown[:2]:
        x = grown[2]
        small = nodes.smaller(form, limit, x)
        larger = nodes.smaller(form, 2 * limit, x)
        assert sum(map(len, small.trees)) <= limit < sum(map(len, form.trees))
        assert changed(form, larger, x) <= changed(form, small, x)


def test_the_weakest_comparison_goes_first():
    # Right of 100 both leaves say the same class, left of it they don't.
    tree = Nodes((0, 0, -1, -1, 0, -1, -1), (100, 50, 0, 60000, 150, 61000, 62000),
                 (4, 3, 0, 0, 6, 0, 0))  # fmt: skip
    form = Tree(SPECS, ("NSB", "SB"), 32768, tree)
    x = np.zeros((200, 4), dtype=np.int64)
    x[:, 0] = np.arange(200)
    small = nodes.smaller(form, 5, x)
    assert small.nodes == Nodes((0, 0, -1, -1, -1), (100, 50, 0, 60000, 61495), (4, 3, 0, 0, 0))
    assert changed(form, small, x) == 0.0


def test_nodes_of_a_forest_keep_the_trees_that_decide(grown):
    _, forest, x = grown
    silent = Nodes((0, -1, -1), (5, 10, 11), (2, 0, 0))
    form = Forest(
        forest.features, forest.labels, forest.decision_threshold, (*forest.trees, silent)
    )
    small = nodes.smaller(form, sum(map(len, form.trees)) - 2, x)
    assert len(small.trees[-1]) == 1
    assert small.trees[:-1] == forest.trees


def test_fewer_nodes_than_trees_are_refused(grown):
    with pytest.raises(UserError, match="5 trees"):
        nodes.smaller(grown[1], 4, grown[2])


@pytest.mark.parametrize("width", [4, 8, 16])
def test_numbers_fit_their_bits_and_comparisons_can_be_shifted(width, grown):
    for form in grown[:2]:
        small = bits.smaller(form, width, grown[2])
        shifts = bits.feature_shifts(form, width)
        half = 1 << (width - 1)
        leaves = set()
        for tree in small.trees:
            for column, value in zip(tree.feature, tree.value, strict=True):
                if column < 0:
                    leaves.add(value)
                    continue
                t = ((value + 1) >> shifts[column]) - 1
                assert ((t + 1) << shifts[column]) - 1 == value
                assert -half <= t < half
        step = min(value & -value for value in leaves if value)
        assert all(-half <= value // step < half for value in leaves)


def test_sixteen_bits_lose_little_and_four_much(grown):
    form, _, x = grown
    losses = [changed(form, bits.smaller(form, width, x), x) for width in (4, 8, 16)]
    assert losses[2] < 0.01 < losses[0]
    assert losses[2] <= losses[1] <= losses[0]


@settings(max_examples=40, deadline=None)
@given(trees | forests, st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_any_form_stays_a_form(form, limit, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2 * 10**9), 2 * 10**9, (60, 4))
    made = [depth.smaller(form, limit, x), bits.smaller(form, limit + 1, x)]
    made.append(nodes.smaller(form, limit + len(form.trees), x))
    for small in made:
        assert loads(dumps(small), "x") == small
        assert sum(map(len, small.trees)) <= sum(map(len, form.trees))


def test_support_vectors_are_bounded_and_fitted_again(table, features):
    x, y = table
    form = lower(make_pipeline(StandardScaler(), SVC(gamma=0.2, C=10.0)).fit(x, y), features)
    k = to_integers(x, features)
    losses = []
    for limit in (10, 40, 200):
        small = vectors.smaller(form, limit, k[:300])
        assert len(small.vectors) == limit < len(form.vectors)
        assert set(small.vectors) <= set(form.vectors)
        assert loads(dumps(small), "x") == small
        losses.append(changed(form, small, k))
    assert losses[2] < 0.005
    assert losses[2] < losses[1] < losses[0]
    assert vectors.smaller(form, len(form.vectors), k) == form


def test_sixteen_bit_vectors_are_fitted_again(table, features):
    x, y = table
    estimator = make_pipeline(StandardScaler(), SVC(gamma=0.25, C=1000.0, max_iter=20000))
    with warnings.catch_warnings(action="ignore"):
        form = lower(estimator.fit(x, y), features)
    k = to_integers(x, features)
    small = bits.smaller(form, 16, k[:400])
    assert form.coordinate_bits == 32
    assert small.coordinate_bits == 16
    assert small.places < form.places
    assert loads(dumps(small), "x") == small
    assert changed(form, small, k) < 0.004
    as_before = np.array(form.weights) / 2.0**form.shift * 2.0**small.shift
    unfitted = dataclasses.replace(small, weights=tuple(map(int, as_before)))
    assert changed(form, unfitted, k) > changed(form, small, k), "fitting must be what helps"
    assert bits.smaller(form, 32, k) == form
    with pytest.raises(UserError, match="too few"):
        bits.smaller(form, 6, k)


def test_surroundings_lie_between_neighbours():
    stored = np.array([[0, 0], [10, 0], [1000, 5]], dtype=np.int64)
    x = surroundings(stored, np.random.default_rng(0))
    assert len(x) > 3
    assert (x[:3] == stored).all()
    assert (x >= stored.min(axis=0)).all()
    assert (x <= stored.max(axis=0)).all()
    assert (surroundings(stored[:1], np.random.default_rng(0)) == stored[:1]).all()


@pytest.mark.parametrize(
    ("model", "setting"), [("tree", "depth=3"), ("forest", "nodes=61"), ("boosted", "bits=16")]
)
def test_export_says_what_was_done_and_verifies(model, setting, zoo, tmp_path, capsys):
    name, value = setting.split("=")
    out = tmp_path / "out"
    command = ["export", str(zoo / model), "-t", "json", "-t", "python", "--out", str(out)]
    assert main([*command, "--set", setting, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    manifest = json.loads((out / "manifest.json").read_text())
    (report,) = manifest["passes"]
    before = loads((zoo / model / "model.json").read_bytes(), "x")
    after = loads((out / "model.json").read_bytes(), "x")
    assert (report["pass"], report["setting"], report["rows"]) == (name, int(value), 256)
    stored = json.loads((zoo / model / "vectors.json").read_text())["values"]
    k = to_integers(np.array(stored), before.features)
    assert report["disagreements"] == round(256 * changed(before, after, k))
    assert manifest["source_model_hash"] == model_hash(before)
    assert manifest["model_hash"] == model_hash(after) == result["model_hash"]
    assert manifest["model_hash"] != manifest["source_model_hash"]
    assert main(["verify", str(out), "--random", "50"]) == 0


def test_without_a_pass_the_hashes_are_one(zoo, tmp_path):
    out = tmp_path / "out"
    assert main(["export", str(zoo / "tree"), "-t", "json", "--out", str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["passes"] == []
    assert manifest["source_model_hash"] == manifest["model_hash"]


@pytest.mark.parametrize(
    ("model", "setting", "said"),
    [
        ("linear", "depth=3", "for forest, tree"),
        ("tree", "vectors=3", "for rbf"),
        ("tree", "depth=0", "greater than or equal to 1, not 0"),
        ("tree", "bits=40", "2 to 32"),
        ("forest", "nodes=2", "6 trees"),
        ("svm", "depth=3", "no integer form"),
        ("tree", "depth=deep", "depth"),
    ],
)
def test_mistakes_get_one_line(model, setting, said, zoo, tmp_path, capsys):
    target = "onnx" if model == "svm" else "json"
    command = ["export", str(zoo / model), "-t", target, "--out", str(tmp_path / "x")]
    assert main([*command, "--set", setting]) == 2
    err = capsys.readouterr().err.strip()
    assert said in err
    assert len(err.splitlines()) == 1


def test_every_pass_has_an_option():
    assert set(PASSES) <= set(Options.model_fields)
