"""`cczoo train sbd auto`: found, kept, exportable; Table 5's splits, resumed and shown."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import synthetic

from models.sbd import automl
from models.sbd.automl.task import Member, Result, Trial
from models.store import load
from pipelines.cli import main
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.sbd import site_blocks
from pipelines.sbd import automl_table5

SETTINGS = """
models:
  sbd:
    workers: 1
    bootstrap: 100
    protocol: {splits: 2, test_share: 0.25}
"""
SEARCH = ("--trials", "3", "--seconds", "300")
"""Ended by its trials, on a busy machine too."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto")
    synthetic.features(3, per_site=20, per_family=4, per_case=1).write_parquet(folder / "f.parquet")
    (folder / "params.yaml").write_text(SETTINGS)
    return folder


def train(folder, *more, training="auto"):
    return main(
        ["train", "sbd", training, "--features", f"{folder}/f.parquet",
         "--params", f"{folder}/params.yaml", *map(str, more)]
    )  # fmt: skip


def table5(folder, *more):
    return train(folder, *more, training="auto-protocol")


@pytest.fixture(scope="module")
def found(folder):
    out = folder / "out"
    assert train(folder, "--out", out, "--no-register", *SEARCH) == 0
    return out


def kept_of(report):
    """The member that became the entry: which learners FLAML tries depends on the time they take,
    and not all that may win can be exported."""
    return next(row for row in report["members"] if row["name"] == report["model"]["member"])


def test_what_was_found_is_told_and_kept(found):
    report = json.loads((found / "automl.json").read_text())
    assert report["backend"] == "flaml"
    assert 1 <= report["evaluated"] <= 3
    assert set(report["accuracy"]) == {"held-out", "unseen"}
    assert report["accuracy"]["unseen"]["mean"] > 0.7
    best, kept = report["members"][0], kept_of(report)
    assert best["accuracy"] == report["accuracy"]
    assert kept["entry"] == f"members/{kept['name']}"
    exported = [row for row in report["members"] if row["entry"]]
    assert kept["loss"] == min(row["loss"] for row in exported)
    assert report["model"] == {"member": kept["name"], "entry": "model", "form": kept["form"]}
    assert report["trajectory"][-1]["loss"] == pytest.approx(best["loss"])
    assert sorted(path.name for path in found.iterdir()) == ["automl.json", "members", "model"]


def test_the_entry_is_the_model_that_was_measured(folder, found):
    entry = load(found / "model")
    report = json.loads((found / "automl.json").read_text())
    assert entry.meta.name == "smartsbd-auto"
    frame = pl.read_parquet(folder / "f.parquet").filter(pl.col("dataset") == "table6")
    right = entry.predict(frame) == (frame["label"] == "SB").to_numpy()
    kept = kept_of(report)
    assert right.mean() == pytest.approx(kept["accuracy"]["unseen"]["mean"])
    assert kept["learner"] in entry.read("card.md").decode()


def test_the_entry_exports_and_verifies(found, tmp_path):
    assert main(["export", str(found / "model"), "-t", "python", "-t", "onnx",
                 "--out", str(tmp_path / "bundle")]) == 0  # fmt: skip
    assert main(["verify", str(tmp_path / "bundle"), "--random", "50"]) == 0


class Backend:
    """Answers with the first feature's sign; counts how often it is asked."""

    def __init__(self):
        self.asked = []

    def check(self):
        """Always there."""

    def search(self, task, progress):
        self.asked.append(task)
        told = tuple((x[:, 0] > 0) * 0.8 + 0.1 for x in task.queries)
        members = (Member("stump", "stump", 1.0, 0.2, {}, None, told, "a comparison, no trees"),)
        return Result("flaml", "0", told, members, (Trial(1.0, "stump", 0.2),), 1.0, 0.5)


@pytest.fixture
def backend(monkeypatch):
    made = Backend()
    monkeypatch.setattr(automl, "_module", lambda name: made)
    return made


def test_a_result_without_an_exportable_member_is_told(folder, tmp_path, backend, capsys):
    assert train(folder, "--out", tmp_path, "--no-register") == 0
    said = capsys.readouterr()
    assert "stump (stump): not exported: a comparison, no trees" in said.out
    assert "no member can be exported" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["automl.json"]


def test_searches_learn_from_training_connections_alone(folder, tmp_path, backend):
    from models.sbd.evaluate.holdout import held_out
    from models.sbd.windows import read, windows

    assert train(folder, "--out", tmp_path, "--no-register", "--family", "smartsbd-plus") == 0
    table = windows(read(folder / "f.parquet"))
    learned = np.unique(backend.asked[0].group)
    assert not set(learned) & set(table.group[held_out(table, 0.1)])
    assert not set(learned) & set(table.group[table.column("dataset") == "table6"])
    assert backend.asked[0].x.shape[1] == len(
        [name for name in table.frame.columns if name in synthetic_plus()]
    )


def synthetic_plus():
    from features.sbd import features_of

    return {feature.name for feature in features_of("smartsbd-plus")}


def test_table_5_goes_on_where_it_was_and_pairs_with_the_others(
    folder, tmp_path, backend, monkeypatch
):
    out = tmp_path / "table5"
    peers = tmp_path / "predictions.parquet"
    monkeypatch.setattr(automl_table5, "PREDICTIONS", peers)
    assert table5(folder, "--splits", 1, "--out", out) == 0
    assert len(backend.asked) == 1
    first = json.loads((out / "automl.json").read_text())["runs"]["flaml"]
    assert (first["splits"], first["differences"]) == (1, {})

    # The other classifier is wrong on every window of the class that the search knows.
    stored = json.loads((out / "splits" / "flaml-smartsbd-0.json").read_text())
    table_rows = rows_of(folder)
    wrong = [
        pl.DataFrame({"row": test, "probability": np.zeros(len(test))}).select(
            pl.lit("within").alias("protocol"), pl.lit(name).alias("split"),
            pl.lit("smartsbd-svm").alias("model"), "row", "probability",
        )
        for name, test in table_rows.items()
    ]  # fmt: skip
    pl.concat(wrong).write_parquet(peers)
    assert table5(folder, "--out", out) == 0
    assert len(backend.asked) == 2, "only the second split is searched"
    assert json.loads((out / "splits" / "flaml-smartsbd-0.json").read_text()) == stored
    report = json.loads((out / "automl.json").read_text())
    (all_sites,) = [r for r in report["rows"] if r["dataset"] == "ALL"]
    gain = report["runs"]["flaml"]["differences"]["smartsbd-svm"]
    # Zeros answer NSB: right on exactly the NSB windows.
    nsb = np.mean([share_nsb(folder, test) for test in table_rows.values()])
    assert gain["mean"] == pytest.approx(all_sites["both"]["mean"] - nsb)
    assert gain["low"] <= gain["mean"] <= gain["high"]

    assert table5(folder, "--splits", 1, "--seconds", 9, "--out", out) == 0
    assert len(backend.asked) == 3, "another budget is another search"

    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "automl.json").write_text(json.dumps(report))
    (tmp_path / "reports" / "sbd").mkdir(parents=True)
    (tmp_path / "reports" / "sbd" / "table5.json").write_text("[]")
    page = site_blocks.overview(Inputs(tmp_path))
    assert f"{all_sites['both']['mean']:.3f}" in page
    assert f">{gain['low']:+.3f} to {gain['high']:+.3f}<" in page
    assert "SmartSBD, FLAML" in page


def rows_of(folder):
    """Split -> rows tested, as the command makes them."""
    from models.sbd.evaluate import splits
    from models.sbd.train.job import Job
    from pipelines.sbd.settings import load_params

    job = Job(folder / "f.parquet", folder, load_params(folder / "params.yaml"))
    made = splits.splits(job.table, job.params.protocol, job.params.seed)
    return {split.name: split.test for split in made if split.protocol == "within"}


def share_nsb(folder, rows):
    from models.sbd.windows import read, windows

    return (windows(read(folder / "f.parquet")).y[rows] == 0).mean()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--out", "x", "--backend", "autosklearn"), "did you mean 'auto-sklearn'"),
        (("--out", "x", "--events", "e"), "unrecognized arguments: --events e"),
        (("--out", "x", "--splits", "1"), "unrecognized arguments: --splits 1"),
        ((), "required: --out"),
        (("--out", "x", "--seconds", "0", "--no-register"), "give --seconds above 0"),
        (("--out", "x", "--family", "smartsbd-pluss"), "did you mean 'smartsbd-plus'"),
    ],
)
def test_a_users_mistake_is_one_line(folder, capsys, more, message):
    assert train(folder, *more) == 2
    assert message in capsys.readouterr().err


def test_the_winner_is_registered(folder, tmp_path, backend, local, capsys):
    from pipelines import tracking

    class Trees(Backend):
        def search(self, task, progress):
            from sklearn.tree import DecisionTreeClassifier

            tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(task.x, task.y)
            told = tuple(tree.predict_proba(x)[:, 1] for x in task.queries)
            member = Member("tree", "tree", 1.0, 0.1, {"depth": 3}, tree, told)
            return Result("flaml", "0", told, (member,), (), 1.0, 1.0)

    backend.search = Trees().search
    capsys.readouterr()
    assert train(folder, "--out", tmp_path / "out", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["registered"] == {"smartsbd-auto": "1"}
    version = tracking.client().get_model_version_by_alias("smartsbd-auto", "candidate")
    assert str(version.version) == "1"
