"""Two models on families left out: the difference is paired, and a wrong name is told."""

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from models.sbd.windows import windows
from pipelines.sbd.left_out import paired


def _table(n):
    label = ["SB" if i // 4 % 2 else "NSB" for i in range(n)]
    return windows(
        pl.DataFrame(
            {
                "connection": [f"c{i // 4:03}" for i in range(n)],
                "window": [i % 4 for i in range(n)],
                "label": label,
            }
        )
    )


def _predictions(table, wrong):
    """Two models: the first right everywhere, the second wrong in these rows."""
    rows = np.arange(len(table))
    right = np.where(table.y == 1, 0.9, 0.1)
    frames = []
    for name, p in (("one", right), ("other", np.where(np.isin(rows, wrong), 1 - right, right))):
        frames.append(
            pl.DataFrame({"row": rows, "probability": p}).with_columns(
                protocol=pl.lit("family"), split=pl.lit("a"), model=pl.lit(name)
            )
        )
    return pl.concat(frames)


def test_the_difference_is_paired():
    table = _table(80)
    found = paired(_predictions(table, [0, 1, 5, 9]), table, "one", "other")
    assert found["first"]["mean"] == 1.0
    assert found["difference"]["mean"] == pytest.approx(-0.05)
    assert -0.15 < found["difference"]["low"] < -0.05 < found["difference"]["high"] <= 0
    assert (found["windows"], found["connections"]) == (80, 20)
    same = paired(_predictions(table, [0]), table, "one", "one")
    assert same["difference"]["low"] == same["difference"]["high"] == 0


def test_an_unknown_model_is_told():
    table = _table(8)
    with pytest.raises(UserError, match="other"):
        paired(_predictions(table, []), table, "one", "othr")


def test_models_that_were_judged_on_other_windows_are_not_compared():
    table = _table(8)
    predictions = _predictions(table, [])
    fewer = predictions.filter((pl.col("model") == "one") | (pl.col("row") > 0))
    with pytest.raises(UserError, match="one and other were judged on other windows"):
        paired(fewer, table, "one", "other")
