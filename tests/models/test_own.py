"""Groups by attributes, and the comparison of a group's own model with the pooled one."""

from dataclasses import replace

import group_tables
import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from models.sbd.groups import labels, own
from models.sbd.params import Groups, Params
from models.sbd.windows import windows

SMALL = Groups(folds=3, repeats=2, inner_folds=2, grid=2, min_connections=4, min_windows=8)


def plan(**changes):
    params = Params(groups=SMALL)
    made = own.Plan(
        classifier="decision-tree",
        features=tuple(group_tables.NAMES[:6]),
        grid=own.grid("decision-tree", params),
        groups=SMALL,
        seed=3,
        confidence=0.95,
        resamples=200,
    )
    return replace(made, **changes)


def test_connections_are_grouped_by_all_their_values() -> None:
    table = group_tables.table({"lyon": 6, "oslo": 6})
    pairs = table.select("connection", labels.label(["site", "cc"])).unique()
    found = dict(pairs.iter_rows())
    assert found["lyon-0000"] == "site=lyon,cc=lia"
    assert found["oslo-0003"] == "site=oslo,cc=reno"
    # Without a value of cc there is no group.
    assert found["lyon-0002"] is None
    empty = table.with_columns(cc=pl.lit("")).select(labels.label(["site", "cc"]))
    assert empty.to_series().null_count() == len(table)


def test_what_cannot_group_is_refused_with_what_can() -> None:
    table = group_tables.table({"lyon": 2})
    for columns, words in {
        ("sites",): "did you mean 'site'",
        ("RTT_ED",): "unknown attribute column to group by 'RTT_ED'",
        ("label",): "known: cc, site, source",
        ("site", "site"): "each column once",
    }.items():
        with pytest.raises(UserError, match=words):
            labels.check_columns(table.columns, columns)
    labels.check_columns(table.columns, ["cc", "site"])
    labels.check_constant(table.select("connection", labels.label(["site"])))
    moved = table.with_columns(site=pl.col("site") + pl.col("window").cast(pl.String))
    with pytest.raises(UserError, match="'lyon-0000' is in 'site=lyon0' and in 'site=lyon1'"):
        labels.check_constant(moved.select("connection", labels.label(["site"])))


def test_a_connection_falls_into_the_same_fold_in_every_table() -> None:
    whole = windows(group_tables.table({"lyon": 40, "oslo": 40}))
    alone = windows(group_tables.table({"lyon": 40}))
    of = dict(zip(whole.column("connection"), own.fold_of(whole, plan(), 1), strict=True))
    folds = own.fold_of(alone, plan(), 1)
    assert [of[name] for name in alone.column("connection")] == folds.tolist()
    assert set(folds) == {0, 1, 2}
    assert (folds != own.fold_of(alone, plan(), 0)).any()


def test_no_model_learns_from_the_connections_it_is_judged_on(monkeypatch) -> None:
    table = windows(group_tables.table({"lyon": 40}))
    made, seen = own.make, []

    def spied(*args):
        estimator = made(*args)
        fit = estimator.fit
        estimator.fit = lambda x, y: (seen.append({tuple(row) for row in x}), fit(x, y))[1]
        return estimator

    monkeypatch.setattr(own, "make", spied)
    left = own.fold_of(table, plan(), 0) == 1
    own.fit_without(table, plan(), 0, 1)
    rows = {tuple(row) for row in table.take(left).matrix(plan().features)}
    assert len(rows) == left.sum() > 0
    # Inner folds for the choice, then the fit.
    assert len(seen) == len(plan().grid) * SMALL.inner_folds + 1
    assert not any(rows & one for one in seen)


def test_a_group_with_rules_of_its_own_beats_the_pooled_model_and_others_do_not() -> None:
    table = windows(group_tables.table({"lyon": 90, "oslo": 90, "rome": 40}, reversed_=("rome",)))
    pooled = {r: own.fit_without(table, plan(), *r) for r in plan().rounds}
    found = {}
    for site in ("lyon", "rome"):
        mine = table.take(table.column("site") == site)
        p, q = own.cross_fit(mine, plan(), pooled)
        right = own.hits(p, mine.y), own.hits(q, mine.y)
        found[site] = own.paired(*right, mine.group, plan())
    assert found["rome"]["difference"]["low"] > 0.3
    assert found["rome"]["own"]["mean"] > 0.8 > 0.5 > found["rome"]["pooled"]["mean"]
    assert found["lyon"]["difference"]["low"] < 0.05


def test_the_interval_covers_what_it_should() -> None:
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(60), 4)
    covered = 0
    for seed in range(40):
        # Windows of a connection are right or wrong together, which widens the interval.
        mine = np.repeat(rng.random(60) < 0.8, 4).astype(float)
        other = np.repeat(rng.random(60) < 0.7, 4).astype(float)
        value = own.paired(mine, other, group, plan(seed=seed))["difference"]
        assert value["mean"] == pytest.approx(mine.mean() - other.mean())
        covered += value["low"] <= 0.1 <= value["high"]
    assert covered >= 34


def test_a_group_of_too_little_data_says_of_what() -> None:
    table = windows(group_tables.table({"lyon": 6}, windows=2))
    assert own.lacking(table, SMALL) == "3 SB connections to learn from, 4 are needed"
    table = windows(group_tables.table({"lyon": 10}, windows=1))
    assert own.lacking(table, SMALL) == "5 SB windows to learn from, 8 are needed"
    assert own.lacking(windows(group_tables.table({"lyon": 10})), SMALL) == ""


def test_the_grid_spans_the_papers_space_within_the_kernels_depth() -> None:
    params = Params(groups=SMALL.model_copy(update={"grid": 3}), zoo_depth=9)
    assert [one["depth"] for one in own.grid("decision-tree", params)] == [1, 5, 9]
    assert {one["leaf"] for one in own.grid("decision-tree", params)} == {params.zoo_leaf}
    assert len(own.grid("svm-rbf", params)) == 9
    assert own.grid("threshold", params) == ({},)
