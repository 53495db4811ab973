"""One rule for training rows: never the fixed test set, always everything else with a label."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import UserError
from features.sbd import features_of
from models.sbd.evaluate import splits as protocol
from models.sbd.evaluate import testset
from models.sbd.evaluate.holdout import held_out
from models.sbd.neural import outofsample
from models.sbd.neural.params import Neural
from models.sbd.params import Params, Protocol
from models.sbd.train import kept
from models.sbd.train.job import Job
from models.sbd.windows import windows
from pipelines.sbd import automl, drift, groups_task

NAMES = [f.name for family in ("smartsbd", "smartsbd-plus") for f in features_of(family)]
DATASETS = st.one_of(
    st.sampled_from(["table6", "random", "shanghai", "frankfurt", "mine", ""]),
    st.text("abcé6 -", min_size=1, max_size=6),
)
CONNECTIONS = st.lists(
    st.tuples(DATASETS, st.sampled_from(["SB", "NSB", "SB", "NSB", None]), st.integers(1, 3)),
    min_size=1, max_size=24,
)  # fmt: skip
SHARES = st.sampled_from([0.0, 0.1, 0.5])


def frame(connections, salt):
    """Rows of connections given as data set, label and windows; equal features throughout."""
    rows = [
        {"connection": f"{salt}-{i}", "window": w, "dataset": dataset, "label": label,
         "family": ("wired", "wifi", "lte")[i % 3]}
        for i, (dataset, label, count) in enumerate(connections)
        for w in range(count)
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema_overrides={"label": pl.String})
    return table.with_columns(pl.lit(0.5).alias(name) for name in NAMES)


def keys(table):
    return set(zip(table.column("connection"), table.column("window"), strict=True))


def learned_by(table, params):
    """Rows that each user of the rule trains on, and the whole tables as each reads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        table.write_parquet(path)
        job = Job(path, Path(folder), params)
        plan = SimpleNamespace(features=tuple(NAMES))
        setup = SimpleNamespace(params=params, plan=plan)
        seen = {}

        def asked(matrix):
            seen["drift"] = matrix
            return np.full(len(matrix), 0.5)

        meta = SimpleNamespace(features=NAMES, threshold=0.5)
        model = SimpleNamespace(meta=meta, predict_proba=asked)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drift, "check_schema", lambda *_: None)
            whole = params.model_copy(
                update={"drift": params.drift.model_copy(update={"sample": 10_000, "windows": 3})}
            )
            reference = drift._reference(path, model, whole)
        found = {
            "kept models, budget and automl": kept.training_rows(job),
            "groups": groups_task.learned(groups_task.usable(table, setup)[0], setup),
            "drift": reference.table,
        }
        return job, {name: keys(rows) for name, rows in found.items()}


@settings(max_examples=60, deadline=None)
@given(CONNECTIONS, SHARES, st.text("xyz", min_size=1, max_size=5))
def test_all_trainings_learn_from_all_but_the_test_set(connections, share, salt):
    params = Params(protocol=Protocol(holdout=share))
    table = frame(connections, salt)
    whole = windows(table)
    test = (whole.column("dataset") == "table6") | held_out(whole, share)
    wanted = whole.take((whole.y >= 0) & ~test)
    if np.unique(wanted.y).size < 2:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.parquet"
            table.write_parquet(path)
            with pytest.raises(UserError, match=r"table\.parquet: .*the fixed test set"):
                _ = Job(path, Path(folder), params).table
        return
    job, learned = learned_by(table, params)
    for user, rows in learned.items():
        assert rows == keys(wanted), user
    tests = automl.tests_of(job)
    together = set().union(*(keys(rows) for rows in tests.values()))
    assert together == keys(testset.fixed(whole, params.protocol))
    assert not together & keys(wanted)


@settings(max_examples=60, deadline=None)
@given(CONNECTIONS, st.text("xyz", min_size=1, max_size=5))
def test_what_is_tested_out_of_sample_never_learned_from_table_6_and_drops_nothing(
    connections, salt
):
    whole = windows(frame(connections, salt))
    table = whole.take(whole.y >= 0)
    params = Params(protocol=Protocol(splits=2))
    dataset = table.column("dataset")
    splits = protocol.splits(table, params.protocol, 3)
    choice = outofsample.selection_splits(table, params, Neural())
    for split in (*splits, *choice):
        assert "table6" not in dataset[split.train]
        assert not set(table.group[split.train]) & set(table.group[split.test])
    for split in splits:
        if split.protocol == "within":
            rows = np.concatenate([split.train, split.test])
            assert sorted(rows) == list(np.flatnonzero(~np.isin(dataset, ("table6", "random"))))
    if len(choice) > 1:
        for split in choice:
            rows = np.concatenate([split.train, split.test])
            assert sorted(rows) == list(np.flatnonzero(dataset != "table6"))


def test_table_6_and_a_data_set_of_ones_own(tmp_path):
    table = synthetic.features(2, per_site=20, per_family=0).with_columns(
        pl.col("dataset").replace_strict({"table6": "table6"}, default="mine")
    )
    table.write_parquet(tmp_path / "t.parquet")
    job = Job(tmp_path / "t.parquet", tmp_path, Params())
    assert set(kept.training_rows(job).column("dataset")) == {"mine"}
    assert set(job.sites().column("dataset")) == {"mine"}


def test_a_site_of_the_paper_and_a_data_set_of_ones_own(tmp_path):
    table = synthetic.features(2, per_site=20, per_family=0, per_case=0).with_columns(
        pl.col("dataset").replace({"frankfurt": "mine"})
    )
    table.write_parquet(tmp_path / "t.parquet")
    job = Job(tmp_path / "t.parquet", tmp_path, Params())
    for rows in (kept.training_rows(job), job.sites()):
        assert "mine" in set(rows.column("dataset"))


def test_a_table_of_test_rows_alone_is_refused(tmp_path):
    table = synthetic.features(2, per_site=0, per_family=0)
    table.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        UserError, match=r"t\.parquet: all 90 labelled rows are of the fixed test set"
    ):
        _ = Job(tmp_path / "t.parquet", tmp_path, Params()).table
