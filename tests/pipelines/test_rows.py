"""What commands leave out of a table is said, and windows that are there twice are refused."""

import errno
import json
import os
import shutil

import polars as pl
import pytest
from registry_entries import NAMES

from models.sbd.computed_with import KEY
from pipelines.cli import main


def write(table, path):
    """A table that says what it was computed with, so that no note of that is printed."""
    table.write_parquet(path, metadata={KEY: "{}"})


@pytest.fixture
def holes(entries, tmp_path):
    """The table with 5 rows of infinite values, 3 of missing ones and 7 without a label."""
    table = pl.read_parquet(entries.features).with_row_index()
    table = table.with_columns(
        pl.when(pl.col("index") < 5).then(float("inf")).otherwise(pl.col(NAMES[0])).alias(NAMES[0]),
        pl.when(pl.col("index").is_between(4, 7)).then(None).otherwise(pl.col(NAMES[1]))
        .alias(NAMES[1]),
        pl.when(pl.col("index") >= table.height - 7).then(None).otherwise(pl.col("label"))
        .alias("label"),
    )  # fmt: skip
    table.drop("index").write_parquet(tmp_path / "holes.parquet")
    return tmp_path / "holes.parquet"


COLUMNS = {NAMES[0]: 5, NAMES[1]: 4}


def test_evaluate_and_predict_say_what_they_leave_out(entries, holes, capsys):
    model = ("--model", str(entries.make("good")), "--features", str(holes), "--json")
    rows = pl.read_parquet(holes).height
    assert main(["evaluate", "sbd", *model]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["dropped"] == {
        "rows": rows, "unlabelled": 7, "not_finite": 8, "columns": COLUMNS, "unanswered": 0
    }  # fmt: skip
    assert found["windows"] == rows - 15
    line = f"{holes}: 15 of {rows} rows left out: 7 have no label, 8 have features that aren't "
    assert line + f"finite ({NAMES[0]} 5, {NAMES[1]} 4)" in err
    assert main(["predict", "sbd", *model]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["dropped"]["not_finite"] == 8
    assert f"{holes}: 8 of {rows} rows left out: 8 have features that aren't finite" in err


def test_training_says_what_it_leaves_out(entries, holes, tmp_path, capsys):
    settings = tmp_path / "p.yaml"
    settings.write_text(
        "models: {sbd: {workers: 0, selection: {seeds: 1}, search: {folds: 2, subsets: 1, "
        "forest_trees: 2, max_iterations: 1000}}}\n"
    )
    words = ["train", "sbd", "search", "--features", str(holes)]
    assert main([*words, "--params", str(settings), "--out", str(tmp_path / "o"), "--json"]) == 0
    out, err = capsys.readouterr()
    dropped = json.loads(out)["dropped"]
    assert (dropped["unlabelled"], dropped["not_finite"]) == (7, 8)
    assert dropped["columns"] == COLUMNS
    assert "15 of " in err


@pytest.mark.parametrize("command", ["evaluate", "predict", "drift"])
def test_a_table_without_a_finite_row_is_an_error_that_says_so(command, entries, tmp_path, capsys):
    table = pl.read_parquet(entries.features).with_columns(pl.lit(float("inf")).alias(NAMES[0]))
    write(table, tmp_path / "t.parquet")
    words = ["drift", "--reference", str(entries.features)]
    words = words if command == "drift" else [command, "sbd"]
    model = ["--model", str(entries.make("good")), "--features", str(tmp_path / "t.parquet")]
    assert main([*words, *model]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    count = table.height
    assert f"none of {count} rows can be used: {count} have features that aren't finite" in error
    assert f"({NAMES[0]} {count})" in error


@pytest.mark.parametrize(
    "command",
    ["evaluate sbd --model {model}", "drift --model {model}",
     "predict sbd --model {model}", "train sbd all --out {out} --no-register",
     "train sbd groups --by dataset --out {out} --no-register",
     "train sbd auto --out {out} --no-register",
     "train sbd budget ns=100 --model dt --out {out} --no-register"],
)  # fmt: skip
def test_windows_that_are_there_twice_are_an_error(command, entries, tmp_path, capsys):
    table = pl.read_parquet(entries.features)
    twice = pl.concat([table, table.slice(1, 3)])
    write(twice, tmp_path / "t.parquet")
    words = command.format(model=entries.make("good"), out=tmp_path / "out").split()
    if "drift" in words:
        words += ["--reference", str(entries.features)]
    assert main([*words, "--features", str(tmp_path / "t.parquet")]) == 2
    error = capsys.readouterr().err
    row = table.row(1, named=True)
    assert f"window {row['window']} of connection '{row['connection']}'" in error
    assert "(3 rows repeat an earlier one)" in error
    assert len(error.strip().splitlines()) == 1, error


def test_windows_of_several_pairs_of_subflows_are_not_the_same(entries, tmp_path, capsys):
    table = pl.read_parquet(entries.features)
    pairs = [
        table.with_columns(
            pl.lit(a).cast(pl.Int64).alias("subflow_a"), pl.lit(b).cast(pl.Int64).alias("subflow_b")
        )
        for a, b in ((1, 2), (1, 3))
    ]
    pl.concat(pairs).write_parquet(tmp_path / "t.parquet")
    words = ["--model", str(entries.make("good")), "--features", str(tmp_path / "t.parquet")]
    assert main(["evaluate", "sbd", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["windows"] == 2 * table.height


def test_predictions_never_replace_the_table_and_are_whole_or_not_there(
    entries, tmp_path, monkeypatch, capsys
):
    table = tmp_path / "f.parquet"
    shutil.copy(entries.features, table)
    before = table.read_bytes()
    words = ["evaluate", "sbd", "--model", str(entries.make("good")), "--features", str(table)]
    (tmp_path / "link.parquet").symlink_to(table)
    os.link(table, tmp_path / "hard.parquet")
    for name in ("f.parquet", "link.parquet", "hard.parquet"):
        assert main([*words, "--predictions", str(tmp_path / name)]) == 2
        assert "is the file of --features: choose another place" in capsys.readouterr().err
    assert table.read_bytes() == before
    assert main([*words, "--predictions", str(table / "x")]) == 2
    assert "is a file, not a folder" in capsys.readouterr().err
    out = tmp_path / "new" / "p.parquet"
    assert main([*words, "--predictions", str(out)]) == 0
    assert pl.read_parquet(out).height
    capsys.readouterr()

    def fail(_, part):
        part.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    assert main([*words, "--predictions", str(tmp_path / "p.parquet")]) == 2
    assert f"{tmp_path / 'p.parquet'}: no space left on device" in capsys.readouterr().err
    assert not [*tmp_path.glob("*p.parquet*")]
