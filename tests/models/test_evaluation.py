import json

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from models.sbd import windows as tables
from models.sbd.accumulate import VerdictSettings
from models.sbd.evaluate.scores import coverage, delay, score


def small() -> tables.Windows:
    frame = pl.DataFrame(
        {
            "source": ["a", "a", "b", "b", "c", "d"],
            "connection": ["1", "1", "2", "2", "3", "4"],
            "window": [0, 1, 0, 1, 0, 0],
            "label": ["SB", "SB", "NSB", "NSB", "SB", "NSB"],
            "start_us": [0, 2, 0, 2, 0, 0],
            "end_us": [2_000_000, 4_000_000, 2_000_000, 4_000_000, 3_000_000, 1_000_000],
            "dataset": ["x", "x", "x", "x", "y", "y"],
        }
    )
    return tables.windows(frame)


P = np.array([0.9, 0.4, 0.2, 0.1, 0.7, 0.8])


def test_score_by_hand() -> None:
    found = score(small(), P, VerdictSettings(), ["dataset"])
    assert found["accuracy"] == pytest.approx(4 / 6)
    assert found["sb_accuracy"] == pytest.approx(2 / 3)
    assert found["nsb_accuracy"] == pytest.approx(2 / 3)
    assert (found["windows"], found["connections"]) == (6, 4)
    # Connection 1: logit(0.9) + logit(0.4) > 0, so right in the end; 4 is wrong.
    assert found["connection_accuracy"] == pytest.approx(3 / 4)
    assert found["by"]["dataset"]["x"]["accuracy"] == pytest.approx(3 / 4)
    assert found["by"]["dataset"]["y"]["windows"] == 2
    assert found["confusion"]["SB"] == {"SB": 2, "NSB": 1, "undecided": 0}
    assert found["intervals"]["accuracy"]["low"] <= 4 / 6
    json.dumps(found, allow_nan=False)


def test_undecided_is_counted_apart() -> None:
    found = score(small(), P, VerdictSettings(confidence=0.9))["accumulated"]
    # logit(0.9) reaches the limit; 0.4 takes it back; 0.2 * 0.1 passes; 0.7 and 0.8 don't.
    assert found["undecided_windows"] == pytest.approx(4 / 6)
    assert found["decided_accuracy"] == 1.0
    assert found["undecided_connections"] == pytest.approx(3 / 4)
    assert sum(sum(row.values()) for row in found["confusion"].values()) == 6


def test_coverage_falls_as_confidence_rises() -> None:
    rng = np.random.default_rng(0)
    state = rng.normal(0, 3, 400)
    rows = coverage(state, (state > 0).astype(np.int64), np.arange(400) // 4)
    shares = [row["window_coverage"] for row in rows]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert all(row["window_accuracy"] == 1.0 for row in rows)


def test_delay_counts_to_the_end_of_the_deciding_window() -> None:
    rows = {row["dataset"]: row for row in delay(small(), P, VerdictSettings(confidence=0.9))}
    assert rows["x"]["first_s"]["median"] == pytest.approx(2.0)
    # Connection 1 is confident at once, connection 2 after its second window.
    assert rows["x"]["confident_s"] == {"p10": pytest.approx(2.2), "median": pytest.approx(3.0),
                                        "p90": pytest.approx(3.8), "share": 1.0}  # fmt: skip
    assert "confident_s" not in rows["y"]
    assert rows["y"]["stable_s"]["share"] == pytest.approx(1 / 2)


def test_windows_orders_and_numbers_connections() -> None:
    shuffled = small().frame.sample(fraction=1, shuffle=True, seed=3)
    found = tables.windows(shuffled)
    assert found.group.tolist() == [0, 0, 1, 1, 2, 3]
    assert found.frame["window"].to_list() == [0, 1, 0, 1, 0, 0]


def test_wrong_label_and_missing_column_say_where() -> None:
    frame = small().frame.with_columns(label=pl.lit("both"))
    with pytest.raises(UserError, match=r"'both'.*SB or NSB"):
        tables.windows(frame)
    with pytest.raises(UserError, match="'RTT_ED'"):
        small().matrix(["RTT_ED"])


def test_attributes_are_strings_of_few_values() -> None:
    frame = pl.DataFrame(
        {
            "source": [f"s{i}" for i in range(60)],
            "label": ["SB"] * 60,
            "cc": ["lia", "reno"] * 30,
            "many": [f"m{i}" for i in range(60)],
            "empty": pl.Series([None] * 60, dtype=pl.String),
            "RTT_ED": [0.5] * 60,
        }
    )
    assert tables.attributes(frame, ["RTT_ED"]) == ["cc"]
