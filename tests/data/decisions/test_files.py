"""Decisions written are the decisions read, whatever the size of a row group."""

import json

import numpy as np
import polars as pl
import pytest

from data.decisions import files
from data.decisions.run import Run
from data.decisions.schema import KEY, About
from data.errors import UserError

ABOUT = About(
    agent="tcco",
    observation=("throughput_bps", "rtt_us"),
    units=("bit/s", "us"),
    schema_hash="0" * 64,
    interval_us=20_000,
    actions=(-1.0, 0.0, 1.0),
    change_unit="segments",
    seeds=(1, 2),
    command="made here",
)


def made(number: int) -> Run:
    rng = np.random.default_rng(number)
    shape = (int(rng.integers(1, 40)), int(rng.integers(1, 4)))
    return Run(
        f"run-{number}",
        "cubic",
        "here",
        rng.random((*shape, 2), np.float32),
        rng.integers(0, 3, shape).astype(np.int8),
        rng.random(shape, np.float32),
        rng.random(shape, np.float32),
        last=number % 2 == 0,
        truncated=number % 2 == 1,
    )


@pytest.mark.parametrize("rows", [7, 40, 1 << 17])
def test_runs_come_back_as_they_were(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(files, "GROUP_ROWS", rows)
    written = [made(number) for number in range(20)]
    count = files.write(tmp_path / "a.parquet", ABOUT, iter(written))
    assert count == sum(run.rows for run in written)
    for one, other in zip(written, files.runs(tmp_path), strict=True):
        for name in ("name", "behaviour", "scenario", "last", "truncated"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("observation", "action", "change", "reward"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_table_has_a_row_per_decision_and_subflow(tmp_path):
    written = [made(number) for number in range(4)]
    files.write(tmp_path / "a.parquet", ABOUT, written)
    table = pl.read_parquet(tmp_path / "a.parquet")
    assert table.columns == [field.name for field in ABOUT.columns()]
    assert table.filter(pl.col("first"))["step"].max() == 0
    ends = table.filter(pl.col("last") | pl.col("truncated")).group_by("run").len()
    assert dict(ends.iter_rows()) == {run.name: run.subflows for run in written}
    said = json.loads(pl.read_parquet_metadata(tmp_path / "a.parquet")[KEY])
    assert said["interval_us"] == 20_000
    assert files.about(tmp_path) == ABOUT


def test_what_holds_no_decisions_is_refused(tmp_path):
    with pytest.raises(UserError, match="no Parquet file"):
        files.about(tmp_path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(UserError, match="holds no decisions"):
        list(files.runs(tmp_path))


def test_files_of_two_observations_are_refused(tmp_path):
    files.write(tmp_path / "a.parquet", ABOUT, [made(1)])
    files.write(tmp_path / "b.parquet", ABOUT.model_copy(update={"schema_hash": "1"}), [made(2)])
    with pytest.raises(UserError, match=r"b\.parquet"):
        list(files.runs(tmp_path))


def test_what_fails_on_the_way_is_raised_as_it_is_and_leaves_no_file(tmp_path):
    def broken():
        yield made(1)
        raise UserError("no more of them")

    with pytest.raises(UserError, match="no more of them"):
        files.write(tmp_path / "a.parquet", ABOUT, broken())
    assert not list(tmp_path.iterdir())


def test_an_episode_has_one_observation_more_than_decisions():
    for run in (made(1), made(2)):
        episode = run.episode()
        count = run.steps - 1
        assert len(episode["observations"]) == count + 1
        assert [len(episode[name]) for name in list(episode)[1:]] == [count] * 4
        assert episode["rewards"][0] == pytest.approx(run.reward[0].sum())
        ends = episode["terminations"] | episode["truncations"]
        assert ends.sum() == ends[-1] == 1
        assert episode["terminations"][-1] == run.last
