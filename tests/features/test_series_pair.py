"""Cells of series: means that keep the sum, whatever the window's length."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from features.params import SbdParams
from features.sbd import TABLES, features_of
from features.series_pair import (
    CELLS,
    FEATURES,
    LONG_CELLS,
    LONG_WINDOWS,
    cell_means,
    compute,
)
from features.windows import windows

NAMES = [feature.name for feature in FEATURES]


@given(
    series=st.integers(1, 400).flatmap(
        lambda n: arrays(np.float64, n, elements=st.floats(0, 1e6, width=32))
    ),
    cells=st.integers(1, 200),
)
@settings(max_examples=60, deadline=None)
def test_means_keep_the_mean_and_the_range(series, cells):
    found = cell_means(series, cells)
    assert found.shape == (cells,)
    assert found.mean() == pytest.approx(series.mean(), abs=1e-6 * max(1.0, series.max()))
    slack = 1e-6 * max(1.0, series.max()) * cells
    assert found.min() >= series.min() - slack
    assert found.max() <= series.max() + slack


def test_cells_of_as_many_points_are_the_points():
    series = np.array([[3.0, 1.0, 4.0, 1.0], [5.0, 9.0, 2.0, 6.0]])
    np.testing.assert_allclose(cell_means(series, 4), series)
    np.testing.assert_allclose(cell_means(series, 2), [[2.0, 2.5], [7.0, 4.0]])
    np.testing.assert_allclose(cell_means(series[:, :2], 4), [[3, 3, 1, 1], [5, 5, 9, 9]])


def test_columns_hold_what_their_names_say(connection):
    made = windows(*connection(3), SbdParams(min_window_us=1000))[0]
    rows = compute(made)
    assert rows.shape == (len(made), len(FEATURES))
    at = {name: rows[:, i] for i, name in enumerate(NAMES)}
    for number, window in enumerate(made[:4]):
        for side, name in enumerate(("wifi", "other")):
            rtt = np.array([at[f"{name}_RTT_{k:03d}"][number] for k in range(CELLS)])
            assert rtt.mean() == pytest.approx(window.rtt_us[side].mean(), abs=1)
            state = np.array([at[f"{name}_CState_{k:03d}"][number] for k in range(CELLS)])
            assert state.mean() == pytest.approx(window.congested[side].mean(), abs=1 / 256)
            assert at[f"{name}_Min_RTT"][number] == round(window.min_rtt_us[side])
            long = np.array([at[f"{name}_Long_RTT_{k:02d}"][number] for k in range(LONG_CELLS)])
            known = min(number + 1, LONG_WINDOWS) * LONG_CELLS // LONG_WINDOWS
            assert (long[-known:] > 0).all()
            assert (long[:-known] == 0).all()
            tail = LONG_CELLS // LONG_WINDOWS
            assert long[-tail:].mean() == pytest.approx(window.rtt_us[side].mean(), rel=0.05)


def test_values_are_fixed_point_and_exact_in_float32(connection):
    rows = compute(windows(*connection(4), SbdParams())[0])
    scaled = rows * [f.scale for f in FEATURES]
    assert (scaled == np.round(scaled)).all()
    assert (rows.astype(np.float32) == rows).all()
    assert (rows >= [f.low for f in FEATURES]).all()
    assert (rows <= [f.high for f in FEATURES]).all()


def test_no_windows_give_no_rows():
    assert compute([]).shape == (0, len(FEATURES))


def test_the_family_has_a_table_of_its_own():
    assert TABLES["series"] == ("smartsbd-series",)
    assert features_of("smartsbd-series") == FEATURES
    assert len(set(NAMES)) == len(NAMES) == 2 * (3 * CELLS + LONG_CELLS + 1)
