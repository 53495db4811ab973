"""What is sealed in an entry is the same where floats differ in their last digits."""

import numpy as np
import polars as pl
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from features.grid import NONE, integers, on_grid
from features.sbd import features_of
from features.spec import Feature
from models.sbd import digits
from models.sbd.content import content_hash
from models.sbd.windows import read, windows

SPECS = features_of("smartsbd")
NAMES = [feature.name for feature in SPECS]


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return synthetic.features(3, per_site=4, per_family=3, per_case=2)


def jittered(frame: pl.DataFrame) -> pl.DataFrame:
    """Another machine's table: every feature one unit in the last place away."""
    up = [pl.Series(n, np.nextafter(frame[n].to_numpy(), np.inf)) for n in NAMES]
    return frame.with_columns(up)


def test_the_hash_of_a_table_is_of_what_it_says(frame, tmp_path):
    meant = content_hash(windows(frame), SPECS)
    other = jittered(frame)
    assert not other.equals(frame)
    assert content_hash(windows(other), SPECS) == meant
    # Other bytes of the same table: compression, order of rows.
    other.sample(fraction=1, shuffle=True, seed=1).write_parquet(
        tmp_path / "t.parquet", compression="snappy"
    )
    assert content_hash(windows(read(tmp_path / "t.parquet")), SPECS) == meant


@pytest.mark.parametrize("column", ["label", "connection", NAMES[0]])
def test_the_hash_of_a_table_changes_with_it(frame, column):
    meant = content_hash(windows(frame), SPECS)
    first = pl.int_range(pl.len()) == 0
    values = {
        "label": pl.when(pl.col("label") == "SB").then(pl.lit("NSB")).otherwise(pl.lit("SB")),
        "connection": pl.lit("another"),
        NAMES[0]: pl.col(NAMES[0]) + 2 / SPECS[0].scale,
    }
    other = frame.with_columns(pl.when(first).then(values[column]).otherwise(column).alias(column))
    assert content_hash(windows(other), SPECS) != meant


def test_features_are_kept_as_exported_code_sees_them(frame):
    from export.fixed import to_integers

    table = windows(frame)
    kept = digits.stored(table, SPECS).matrix(NAMES)
    assert (kept == digits.stored(windows(jittered(frame)), SPECS).matrix(NAMES)).all()
    whole = table.matrix(NAMES)
    assert (to_integers(kept, SPECS) == to_integers(whole, SPECS)).all()
    holed = np.array([[np.nan, np.inf, -np.inf]])
    specs = [Feature(n, "", 0, 1, 8, "", "") for n in "abc"]
    assert integers(holed, specs)[0, 0] == NONE
    np.testing.assert_array_equal(on_grid(holed, specs), holed)


@given(st.floats(1e-12, 0.5))
def test_a_bound_is_above_and_near(error):
    bound = digits.bound(error)
    assert error <= bound <= max(2.5000001 * error, digits.LEAST_ERROR)
    assert f"{bound:.0e}"[0] in "125"


def test_rounding_goes_through_everything_and_leaves_whole_numbers():
    tree = {"a": [0.12345678, {"b": np.float64(-1e-9)}], "n": 3, "ok": True, "none": None}
    found = digits.rounded(tree)
    assert found == {"a": [0.123457, {"b": 0.0}], "n": 3, "ok": True, "none": None}
    assert str(found["a"][1]["b"]) == "0.0"
    assert isinstance(found["n"], int)
