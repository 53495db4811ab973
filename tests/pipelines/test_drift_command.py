"""``cczoo drift`` as its users run it: exit codes, files, mistakes."""

import json

import polars as pl
import pytest
from registry_entries import NAMES
from sklearn.tree import DecisionTreeClassifier

from export.entry import write_entry
from features.sbd import features_of
from models.sbd.drift import reference
from models.sbd.params import Drift
from pipelines.cli import main

SETTINGS = "models: {sbd: {drift: {permutations: 100, trees: 10}}}\n"


@pytest.fixture(scope="module")
def model(entries, tmp_path_factory):
    """An entry with a reference."""
    specs = [f for f in features_of("smartsbd") if f.name in NAMES]
    names = [f.name for f in specs]
    x, y = entries.table.matrix(names), entries.table.y
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y)
    answers = reference.answers(entries.table, tree.predict_proba(x)[:, 1], names)
    kept = reference.of(entries.table, names, answers, Drift(), 0)
    return write_entry(
        "small", tree, specs, {"family": "smartsbd"}, x, {}, "# small\n",
        reference=reference.dumps(kept, names), zoo=tmp_path_factory.mktemp("zoo"),
    )  # fmt: skip


@pytest.fixture
def drift(model, tmp_path):
    (tmp_path / "params.yaml").write_text(SETTINGS)

    def run(features, *more, entry=model):
        arguments = ["--params", f"{tmp_path}/params.yaml", "--features", str(features), *more]
        return main(["drift", "--model", str(entry), *arguments])

    return run


def test_the_training_table_is_no_drift(drift, entries, capsys):
    assert drift(entries.features, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "keep"
    assert found["groups"][0]["accuracy"] == found["groups"][0]["stored_accuracy"]


def test_on_a_narrow_terminal_nothing_is_cut(drift, entries, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "a-site-with-a-long-name-of-its-own"
    table = pl.read_parquet(entries.features).with_columns(dataset=pl.lit(name))
    table.write_parquet(tmp_path / "new.parquet")
    assert drift(tmp_path / "new.parquet", "--by", "dataset") in (0, 1)
    out = capsys.readouterr().out
    assert "…" not in out
    folded = "".join(line.split()[0] for line in out.splitlines() if line[:1].strip())
    assert name in folded
    assert any(line.rstrip().endswith(("keep", "retrain")) for line in out.splitlines())


def test_moved_features_exit_with_one_and_are_drawn(drift, entries, tmp_path, capsys):
    moved = pl.read_parquet(entries.features).with_columns(pl.col("RTT_SD_Ratio") + 5)
    moved.write_parquet(tmp_path / "new.parquet")
    picture = tmp_path / "plots" / "drift.svg"
    more = ("--by", "dataset", "--plot", str(picture))
    assert drift(tmp_path / "new.parquet", *more) == 1
    out = capsys.readouterr().out
    assert "retrain: dataset=" in out
    assert "RTT_SD_Ratio" in out
    text = picture.read_text()
    assert text.startswith("<svg")
    assert "RTT_SD_Ratio" in text


def test_a_table_in_place_of_the_stored_reference(drift, entries, capsys):
    plain = entries.make("good")
    assert drift(entries.features, entry=plain) == 2
    assert "--reference FILE" in capsys.readouterr().err
    assert drift(entries.features, "--reference", str(entries.features), entry=plain) in (0, 1)
    assert "small: new logs" in capsys.readouterr().out


def test_mistakes_are_told_in_one_line(drift, entries, tmp_path, capsys):
    table = pl.read_parquet(entries.features)
    table.drop("Min_RTT_Ratio").write_parquet(tmp_path / "lacks.parquet")
    table.write_parquet(tmp_path / "other.parquet", metadata={"cczoo.smartsbd": "0"})
    table.filter(pl.col("connection") < "c00005").write_parquet(tmp_path / "few.parquet")
    cases = [
        ((tmp_path / "lacks.parquet",), "no column 'Min_RTT_Ratio'"),
        ((tmp_path / "other.parquet",), "schema hash of smartsbd differs"),
        ((tmp_path / "few.parquet",), "can't tell: needs 20"),
        ((entries.features, "--by", "datasett"), "did you mean 'dataset'?"),
        ((entries.features, "--plot", "drift.pdf"), ".svg or .png"),
        ((entries.features, "--predictions", "x"), "unrecognized arguments: --predictions x"),
    ]
    for arguments, says in cases:
        assert drift(*arguments) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("cczoo drift: ")
        assert says in error


def test_a_rule_has_no_training_set_and_an_evaluation_no_groups_to_compare(entries, capsys):
    common = ["--features", str(entries.features), "--model", "rule:dwc"]
    assert main(["drift", *common]) == 2
    assert "a rule has no training set" in capsys.readouterr().err
    assert main(["evaluate", "sbd", *common, "--by", "dataset"]) == 2
    assert "unrecognized arguments: --by dataset" in capsys.readouterr().err
