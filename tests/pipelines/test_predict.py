"""From logs with two and three subflows to what shall be coupled: ingest, features, predict."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from pipelines import cli

RAW = Path(__file__).parents[2] / "data" / "raw"
THREE = RAW / "three-subflows"
LOGS = (
    *("all-shared-lia-0000", "all-separate-lia-0000"),
    *("wifi-lte-lia-0000", "wifi-wired-reno-0000", "lte-wired-lia-0001"),
)
SETS = {
    "all-shared-lia-0000": [[1, 2, 3]],
    "all-separate-lia-0000": [[1], [2], [3]],
    "wifi-lte-lia-0000": [[1, 2], [3]],
    "wifi-wired-reno-0000": [[1, 3], [2]],
    "lte-wired-lia-0001": [[1], [2, 3]],
}

pytestmark = [
    pytest.mark.skipif(not THREE.is_dir(), reason="data/raw isn't in this checkout"),
    pytest.mark.xdist_group("predict"),
]


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Five logs with three subflows, one with two."""
    folder = tmp_path_factory.mktemp("predict")
    logs = folder / "raw" / "three-subflows"
    logs.mkdir(parents=True)
    for name in LOGS:
        shutil.copy(THREE / "three-subflows" / f"{name}.klog.zst", logs)
    shutil.copy(THREE / "labels.csv", folder / "raw")
    two = RAW / "smartsbd-paper" / "frankfurt"
    shutil.copy(next(iter(sorted(two.glob("*sb*.zst")))), folder / "raw" / "two.klog.zst")
    assert cli.main(["ingest", str(folder / "raw"), "--out", str(folder / "events")]) == 0
    return folder / "events"


@pytest.fixture(scope="module")
def features(events, tmp_path_factory):
    """Their table."""
    out = tmp_path_factory.mktemp("features") / "sbd.parquet"
    words = ["features", "sbd", "--events", str(events), "--out", str(out), "--jobs", "1"]
    assert cli.main(words) == 0
    return out


def predict(capsys, *words):
    capsys.readouterr()
    assert cli.main(["predict", "sbd", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_row_for_each_pair_labelled_by_its_bottlenecks(features):
    table = pl.read_parquet(features)
    pairs = table.group_by("connection").agg(
        pl.struct("subflow_a", "subflow_b").n_unique().alias("pairs")
    )
    assert sorted(pairs["pairs"]) == [1, 3, 3, 3, 3, 3]
    one = table.filter(pl.col("source").str.contains("wifi-wired"))
    labels = one.group_by("subflow_a", "subflow_b").agg(pl.col("label").unique())
    assert {row[:2]: row[2] for row in labels.rows()} == {
        (1, 2): ["NSB"], (1, 3): ["SB"], (2, 3): ["NSB"],
    }  # fmt: skip
    spans = table.group_by("connection", "window").agg(pl.struct("start_us", "end_us").n_unique())
    assert set(spans["start_us"]) == {1}


def test_what_shares_is_coupled_and_nothing_else(features, tmp_path, capsys):
    out = tmp_path / "new" / "answers"
    said = predict(
        capsys, "--model", "smartsbd-plus", "--features", features, "--by", "case", "--out", out
    )
    assert said["subflows"] == {"2": 1, "3": 5}
    by_name = {Path(p["connection"]).name: p for p in said["predictions"]}
    for name, sets in SETS.items():
        (row,) = (row for key, row in by_name.items() if key.startswith(name))
        assert row["partition"] == sets
        assert row["uncoupled"] == [s for subset in sets if len(subset) == 1 for s in subset]
    scores = said["scores"]["accumulated"]
    assert scores["exact_connection"]["mean"] == 1
    assert scores["windows_of_three"] >= 25
    assert set(scores["by"]["case"]) >= {"all-shared", "wifi-wired"}
    pairs, subflows = (pl.read_parquet(out / f"{n}.parquet") for n in ("pairs", "subflows"))
    assert pairs.height == said["rows"]
    of_each = pairs.group_by("connection").agg(
        pl.col("window").n_unique() * pl.concat_list("subflow_a", "subflow_b").explode().n_unique()
    )
    assert subflows.height == of_each["window"].sum()
    last = subflows.filter(pl.col("source").str.contains("wifi-wired")).group_by("subflow").agg(
        pl.col("group").last(), pl.col("coupled").last()
    )  # fmt: skip
    assert sorted(last.rows()) == [(1, 1, True), (2, 2, False), (3, 1, True)]
    assert not list(out.glob("*.part"))


def test_events_give_what_their_table_gives(events, features, capsys):
    model = ["--model", "smartsbd-dt", "--verdicts", "window"]
    by_events = predict(capsys, *model, "--events", events, "--jobs", "1")
    by_table = predict(capsys, *model, "--features", features)
    assert by_events == by_table
    assert by_table["verdicts"] == "window"


def test_a_person_sees_a_summary(features, capsys):
    words = ["predict", "sbd", "--model", "smartsbd-plus", "--features", str(features)]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "1 of 2 subflows, 5 of 3 subflows" in shown
    assert "{1,3} {2}" in shown
    assert "aren't transitive" in shown


def test_evaluate_takes_pairs_apart(features, capsys):
    words = ["evaluate", "sbd", "--model", "smartsbd-plus", "--features", str(features), "--json"]
    capsys.readouterr()
    assert cli.main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["connections"] == 16
    assert said["connection_accuracy"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--verdicts", "windows"], "did you mean 'window'"),
        (["--by", "casse"], "did you mean 'case'"),
        (["--model", "smartsbd-pluss"], "did you mean 'smartsbd-plus'"),
    ],
)
def test_mistakes_are_told_in_one_line(words, message, features, capsys):
    given = ["predict", "sbd", "--model", "smartsbd-plus", "--features", str(features), *words]
    assert cli.main(given) == 2
    assert message in capsys.readouterr().err


def test_other_predictions_are_unknown(features, capsys):
    assert cli.main(["predict", "sdb", "--model", "x", "--features", str(features)]) == 2
    assert "did you mean 'sbd'" in capsys.readouterr().err
