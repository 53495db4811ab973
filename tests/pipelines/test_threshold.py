"""A model with a threshold of its own, and models named by their place in the registry."""

import json

import numpy as np
import polars as pl
import pytest
from registry_entries import NAMES
from sklearn.tree import DecisionTreeClassifier

from export.entry import write_entry
from features.sbd import features_of
from models import store
from models.sbd.evaluate import testset
from models.sbd.params import Protocol
from models.sbd.windows import read, windows
from pipelines.cli import main
from pipelines.gates.comparison import Comparison
from pipelines.params import load as load_params
from pipelines.sources import open_model

THRESHOLD = 0.8


@pytest.fixture(scope="module")
def wary(entries, tmp_path_factory):
    """An entry that answers SB only where it is sure."""
    specs = [f for f in features_of("smartsbd") if f.name in NAMES]
    table = entries.table
    x = table.matrix([f.name for f in specs])
    tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=40, random_state=0).fit(x, table.y)
    meta = {"family": "smartsbd", "threshold": THRESHOLD}
    return write_entry(
        "wary", tree, specs, meta, x, {"headline": {}}, "# wary\n", labels=table.y,
        test=testset.sample(testset.fixed(table, Protocol()), 10_000),
        zoo=tmp_path_factory.mktemp("zoo"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def meant(wary, entries):
    """Probability and the answers that the threshold makes of it, and those of one half."""
    table = windows(read(entries.features))
    probability = store.load(wary).predict_proba(table.frame)
    answers = probability > THRESHOLD
    assert (answers != (probability > 0.5)).mean() > 0.02, "else this file could not fail"
    return table, answers


def told(capsys, *words):
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_command_answers_as_the_models_threshold_says(wary, meant, entries, tmp_path, capsys):
    table, answers = meant
    right = float((answers == (table.y == 1)).mean())
    words = ("--model", wary, "--features", entries.features)
    file = tmp_path / "answers.parquet"
    evaluated = told(capsys, "evaluate", "sbd", *words, "--predictions", file)
    assert evaluated["accuracy"] == pytest.approx(right)
    said = pl.read_parquet(file)["answer"].to_numpy() == "SB"
    np.testing.assert_array_equal(said, answers)
    predicted = told(capsys, "predict", "sbd", *words, "--verdicts", "window", "--out", tmp_path)
    assert predicted["scores"]["window"]["pair_accuracy"]["mean"] == pytest.approx(right)
    pairs = pl.read_parquet(tmp_path / "pairs.parquet").sort("source", "connection", "window")
    np.testing.assert_array_equal(pairs["answer"].to_numpy() == "SB", answers)
    model = store.load(wary)
    np.testing.assert_array_equal(model.predict(table.frame), answers)
    test = testset.fixed(table, Protocol())
    (report,) = told(capsys, "zoo", "verify", wary)["models"]
    assert report["ok"]
    fixed = float((model.predict(test.frame) == test.y).mean())
    assert report["evaluation"]["model.onnx"]["now"] == pytest.approx(fixed)
    # Gates ask what the kernel runs: the integer form.
    comparison = Comparison("wary", model, None, entries.features, load_params(None).models.of, {})
    integers = report["evaluation"]["model.json"]["now"]
    assert comparison.pairing.quantities["windows"].figures()["candidate"] == pytest.approx(
        integers
    )
    drifted = told(capsys, "drift", *words, "--reference", entries.features)
    assert drifted["groups"][0]["accuracy"]["mean"] == pytest.approx(right, abs=0.02)
    assert drifted["groups"][0]["sb_share"]["mean"] == pytest.approx(answers.mean(), abs=0.02)


def test_a_registered_model_is_a_model_in_every_command(entries, local, send, tmp_path, capsys):
    directory = entries.make("good")
    send(small=directory)
    address = "registry:small/1"
    assert open_model(address).meta == store.load(directory).meta
    words = ("--features", entries.features)
    for command in (("evaluate", "sbd"), ("predict", "sbd")):
        one = told(capsys, *command, "--model", address, *words)
        other = told(capsys, *command, "--model", directory, *words)
        assert {**one, "model": ""} == {**other, "model": ""}
    for action in ("verify", "show"):
        one = told(capsys, "zoo", action, address)
        other = told(capsys, "zoo", action, directory)
        if action == "verify":
            assert one["models"][0].pop("name") == address
            assert other["models"][0].pop("name") == str(directory)
        assert one == other


@pytest.mark.parametrize(
    "command",
    [("evaluate", "sbd", "--model"), ("drift", "--model"),
     ("predict", "sbd", "--model"), ("zoo", "verify"), ("zoo", "show")],
    ids=" ".join,
)  # fmt: skip
def test_an_address_that_leads_nowhere_names_the_registry(command, entries, local, capsys):
    words = ["--features", str(entries.features)] if command[0] != "zoo" else []
    assert main([*command, "registry:smal", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert "registry:smal: " in error
    assert "mlflow.db has no model yet" in error
