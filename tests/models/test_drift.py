"""Retrain or not: on tables whose drift is known."""

import json

import numpy as np
import polars as pl
import pytest
import synthetic

from data.errors import UserError
from models.sbd.drift import compare as drift
from models.sbd.drift import reference
from models.sbd.params import Drift
from models.sbd.windows import windows

NAMES = ["RTT_SD_Ratio", "Min_RTT_Ratio", "RTT_ED"]
SETTINGS = Drift(permutations=200, trees=10)


def table(seed, **changes):
    made = synthetic.features(seed, per_site=40, per_family=1, per_case=1, windows=2)
    return windows(made.filter(pl.col("dataset").is_in(synthetic.SITES)).with_columns(**changes))


def answers(of):
    """A model that reads one feature: right in about nine of ten windows."""
    return 1 / (1 + np.exp(-4 * (of.matrix(["RTT_SD_Ratio"])[:, 0] - synthetic.MIDDLE)))


@pytest.fixture(scope="module")
def trained():
    whole = table(1)
    kept = reference.answers(whole, answers(whole), NAMES)
    return reference.of(whole, NAMES, kept, SETTINGS, 0)


def compare(trained, new, by=(), settings=SETTINGS):
    return drift.compare(trained, new, answers(new), NAMES, by, settings, 0)


def test_the_training_connections_once_more_keep_the_model(trained):
    found = compare(trained, table(1))
    assert (found["verdict"], found["drift"]) == ("keep", False)
    row = found["groups"][0]
    assert row["auc"]["auc"] < 0.6
    assert {f["p"] for f in row["features"]} == {1.0}
    assert row["novel"] < 0.2
    assert row["accuracy_change"]["low"] < 0 < row["accuracy_change"]["high"]
    assert row["connections"] == 160
    assert row["reference_connections"] == 160


def test_a_feature_that_the_model_lives_by_has_moved(trained):
    found = compare(trained, table(1, RTT_SD_Ratio=pl.col("RTT_SD_Ratio") + 2))
    assert found["verdict"] == "retrain"
    row = found["groups"][0]
    assert row["features"][0]["name"] == "RTT_SD_Ratio"
    assert [f["name"] for f in row["features"] if f["q"] <= 0.05] == ["RTT_SD_Ratio"]
    assert row["features"][0]["median"] - row["features"][0]["reference_median"] > 1
    assert "accuracy fell" in found["reason"]
    assert row["sb_share"]["mean"] > row["stored_sb_share"]["mean"]


def test_drift_without_labels_says_retrain_and_why(trained):
    found = compare(trained, table(1, RTT_ED=pl.col("RTT_ED") + 2, label=pl.lit(None, pl.String)))
    assert found["verdict"] == "retrain"
    assert "no labels" in found["reason"]
    assert found["groups"][0]["accuracy"] is None


def test_drift_that_costs_nothing_keeps_the_model(trained):
    lenient = SETTINGS.model_copy(update={"margin": 0.5})
    found = compare(trained, table(1, RTT_ED=pl.col("RTT_ED") + 2), settings=lenient)
    assert (found["verdict"], found["drift"]) == ("keep", True)
    assert "accuracy holds" in found["reason"]


def test_a_difference_below_the_effect_is_none(trained):
    blunt = SETTINGS.model_copy(update={"effect": 1.0})
    new = table(1, RTT_ED=pl.col("RTT_ED") + 2, label=pl.lit(None, pl.String))
    assert compare(trained, new, settings=blunt)["verdict"] == "keep"


def test_only_the_group_that_moved_is_named(trained):
    moved = pl.when(pl.col("dataset") == "frankfurt").then(3).otherwise(0)
    found = compare(trained, table(1, RTT_SD_Ratio=pl.col("RTT_SD_Ratio") + moved), ["dataset"])
    verdicts = {row["group"]: row["verdict"] for row in found["groups"]}
    assert verdicts.pop("dataset=frankfurt") == "retrain"
    assert set(verdicts.values()) == {"keep"}
    assert found["reason"].startswith("dataset=frankfurt: ")


def test_groups_that_came_and_went_are_named(trained):
    renamed = pl.col("dataset").replace("frankfurt", "berlin")
    found = compare(trained, table(1, dataset=renamed), ["dataset"])
    assert found["absent"] == ["dataset=frankfurt"]
    row = next(r for r in found["groups"] if r["group"] == "dataset=berlin")
    assert not row["in_training"]
    assert row["reference_connections"] == 160


def test_too_few_connections_are_no_verdict(trained):
    few = table(1)
    few = few.take(few.group < 19)
    with pytest.raises(UserError, match=r"can't tell: needs 20 .* has 19"):
        compare(trained, few)
    mixed = table(1)
    mixed = mixed.take((mixed.column("dataset") == "shanghai") | (mixed.group % 8 < 2))
    found = compare(trained, mixed, ["dataset"])
    assert {row["verdict"] for row in found["groups"]} == {"keep", "can't tell"}
    assert "3 of 4 groups have too few" in found["reason"]


def test_a_reference_survives_json_but_for_four_digits(trained):
    content = json.loads(reference.dumps(trained, NAMES))
    back = reference.loads(content, NAMES, "reference.json")
    np.testing.assert_allclose(back.table.matrix(NAMES), trained.table.matrix(NAMES), rtol=5e-4)
    assert (back.connections, back.windows) == (160, 320)
    np.testing.assert_array_equal(back.table.column("dataset"), trained.table.column("dataset"))
    new = table(1)
    first, second = (compare(one, new)["groups"][0] for one in (trained, back))
    assert second["accuracy_change"] == first["accuracy_change"]
    with pytest.raises(UserError, match=r"reference.json"):
        reference.loads(content, NAMES[:2], "reference.json")


def test_windows_are_taken_evenly_from_each_connection():
    frame = pl.DataFrame({"connection": ["a"] * 5 + ["b"], "window": [0, 1, 2, 3, 4, 0]})
    whole = windows(frame)
    assert reference.thin(whole, 2).frame["window"].to_list() == [0, 4, 0]
    assert reference.thin(whole, 3).frame["window"].to_list() == [0, 2, 4, 0]
    assert reference.thin(whole, 1).frame["window"].to_list() == [0, 0]
    assert len(reference.sample(whole, 1, 0).frame["connection"].unique()) == 1
