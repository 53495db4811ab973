"""From a features table to a zoo and back: search, protocol, fit, evaluate."""

import json
from pathlib import Path

import polars as pl
import pytest
import synthetic

from pipelines.cli import main

SETTINGS = """
models:
  sbd:
    workers: 0
    bootstrap: 100
    zoo_trees: 5
    selection: {seeds: 1}
    search: {folds: 2, subsets: 2, windows_per_connection: 1, forest_trees: 3}
    # Eighty connections are too few to hold any out.
    protocol: {splits: 2, top_k: 2, holdout: 0}
    plus: {forest_trees: 5, boosting_trees: 10}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    synthetic.features(2, per_site=10, per_family=8, per_case=1, windows=2).write_parquet(
        folder / "features.parquet"
    )
    (folder / "params.yaml").write_text(SETTINGS)
    code = main(
        ["train", "sbd", "all", "--features", f"{folder}/features.parquet",
         "--out", f"{folder}/out", "--zoo", f"{folder}/zoo", "--params", f"{folder}/params.yaml",
         "--no-register", "--json"]
    )  # fmt: skip
    assert code == 0
    return folder


def _json(path: Path) -> object:
    return json.loads(path.read_text())


def test_every_table_is_written(trained: Path) -> None:
    names = {path.name for path in (trained / "out").iterdir()}
    assert names >= {
        "mi.json", "search.csv", "best.json", "predictions.parquet", "table5.json", "table6.json",
        "mixed.json", "transfer.json", "lofo.json", "plus.json", "calibration.json",
        "confusion.json", "delay.json", "metrics.json",
    }  # fmt: skip
    curves = pl.read_csv(trained / "out" / "search.csv")
    assert set(curves["model"]) == {
        "decision-tree", "random-forest", "svm-linear", "svm-rbf", "logistic-regression",
    }  # fmt: skip
    assert curves["accuracy"].is_between(0, 1).all()
    table5 = _json(trained / "out" / "table5.json")
    assert isinstance(table5, list)
    assert {row["dataset"] for row in table5} == {"ALL", *synthetic.SITES}
    assert {"smartsbd-dt", "smartsbd-svm", "smartsbd-plus-gb", "threshold"} <= {
        row["model"] for row in table5
    }


def test_chosen_without_each_family(trained: Path) -> None:
    plan = _json(trained / "out" / "plus.json")
    assert isinstance(plan, dict)
    assert set(plan["outer"]) == set(synthetic.FAMILIES)
    assert plan["chosen"] in plan["merits"]
    assert plan["merits"][plan["chosen"]] == max(plan["merits"].values())


def test_zoo_and_its_cards(trained: Path) -> None:
    names = {path.name for path in (trained / "zoo").iterdir()}
    assert {"smartsbd-dt", "smartsbd-rf", "smartsbd-svm", "smartsbd-lr", "smartsbd-plus"} <= names
    card = (trained / "zoo" / "smartsbd-dt" / "card.md").read_text()
    assert "Table 6, unseen" in card
    assert "the paper's data" in card
    chosen = _json(trained / "out" / "plus.json")["chosen"]  # type: ignore[index]
    same = [trained / "zoo" / name / "model.onnx" for name in ("smartsbd-plus", chosen)]
    assert (same[0].parent / "card.md").read_text().startswith("# smartsbd-plus\n")
    from models.store import load

    first, second = (load(path.parent) for path in same)
    table = pl.read_parquet(trained / "features.parquet")
    assert (first.predict_proba(table) == second.predict_proba(table)).all()


def test_as_a_family_it_trains_and_measures_the_same(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from models.sbd import family
    from models.store import load
    from models.trained import Job
    from pipelines.params import load as load_params

    features = trained / "features.parquet"
    params = load_params(trained / "params.yaml").models.of("sbd")
    job = Job(features, tmp_path, params, "cczoo train sbd all", lambda items, *_: items)
    made = {one.name: one for one in family.train(job)}
    assert {*made} == {path.name for path in (trained / "zoo").iterdir()}
    kept = load(trained / "zoo" / "smartsbd-dt")
    assert kept.read_json("metrics.json")["headline"] == made["smartsbd-dt"].metrics["headline"]
    assert "Table 6, unseen" in family.card(made["smartsbd-dt"])
    figures = family.evaluate(kept, features)
    words = ["--model", str(kept.directory), "--features", str(features), "--json"]
    capsys.readouterr()
    assert main(["evaluate", "sbd", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    for name in ("accuracy", "connection_accuracy", "sb_accuracy", "nsb_accuracy"):
        assert figures[name].mean == pytest.approx(told[name])
    assert figures["accuracy"].count == told["windows"]


@pytest.mark.parametrize("name", ["smartsbd-dt", "smartsbd-svm", "smartsbd-plus"])
def test_evaluate_prints_what_others_script_against(
    trained: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = trained / "fresh.parquet"
    synthetic.features(9, 4, 4, 1, 2).write_parquet(fresh)
    model = str(trained / "zoo" / name)
    assert main(["evaluate", "sbd", "--model", model, "--features", str(fresh), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] > 0.7
    assert {"sb_accuracy", "nsb_accuracy", "connection_accuracy"} <= set(found)
    assert found["windows"] == pl.read_parquet(fresh).height
    assert found["connections"] == found["windows"] / 2
    assert set(found["by"]["dataset"]) == {*synthetic.SITES, "random", "table6"}
    assert set(found["by"]["dataset"]["random"]) >= {"accuracy", "windows"}
    assert sum(row["windows"] for row in found["by"]["cc"].values()) == found["windows"]


def test_evaluate_without_labels_predicts(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = trained / "bare.parquet"
    frame = synthetic.features(9, 2, 0, 0, 2)
    frame = frame.with_columns(
        label=pl.lit(None, pl.String),
        RTT_SD_Ratio=pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise("RTT_SD_Ratio"),
    )
    frame.write_parquet(bare)
    model = str(trained / "zoo" / "smartsbd-rf")
    used = json.loads((trained / "zoo" / "smartsbd-rf" / "meta.json").read_text())["features"]
    assert main(["evaluate", "sbd", "--model", model, "--features", str(bare), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] is None
    assert found["rows_unlabelled"] == frame.height
    assert found["rows_unusable"] == int("RTT_SD_Ratio" in used)
    assert len(found["predictions"]) == frame.height - found["rows_unusable"]
    assert main(["evaluate", "sbd", "--model", model, "--features", str(bare)]) == 0
    assert "no labels" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "smartsbd-pluss"], "smartsbd-plus"),
        (["--model", "rule:dcw"], "dwc"),
        (["--model", "rule:dwc"], "--events"),
    ],
)
def test_evaluate_explains_wrong_names(
    trained: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    features = str(trained / "features.parquet")
    assert main(["evaluate", "sbd", *arguments, "--features", features]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_train_refuses_one_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.parquet"
    synthetic.features(0, 4, 0, 0, 1).filter(pl.col("label") == "SB").write_parquet(path)
    assert main(["train", "sbd", "all", "--features", str(path), "--out", str(tmp_path)]) == 2
    assert "both SB and NSB" in capsys.readouterr().err
