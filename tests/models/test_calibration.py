import numpy as np
import pytest

from models.stats.calibration import (
    CLIP,
    apply_isotonic,
    isotonic,
    logit,
    platt,
    reliability,
    sigmoid,
)


def test_platt_finds_slope_and_offset() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(0, 2, 20000)
    y = (rng.random(20000) < sigmoid(0.6 * score + 0.4)).astype(np.int64)
    slope, offset = platt(score, y)
    assert slope == pytest.approx(0.6, abs=0.03)
    assert offset == pytest.approx(0.4, abs=0.05)


def test_platt_never_turns_a_model_round_and_takes_one_class() -> None:
    score = np.linspace(-2, 2, 40)
    assert platt(score, (score < 0).astype(np.int64))[0] == 0.0
    assert platt(score, np.ones(40, np.int64)) == (1.0, 0.0)
    slope, _ = platt(score, (score > 0).astype(np.int64))
    assert np.isfinite(slope)


def test_isotonic_travels_as_numbers_and_rises() -> None:
    rng = np.random.default_rng(1)
    score = rng.normal(0, 1, 500)
    curve = isotonic(score, (rng.random(500) < sigmoid(score)).astype(np.int64))
    p = apply_isotonic(curve, np.linspace(-9, 9, 50))
    assert (np.diff(p) >= 0).all()
    assert p.min() >= CLIP
    assert p.max() <= 1 - CLIP


def test_logit_is_bounded() -> None:
    assert np.isfinite(logit([0.0, 1.0])).all()
    assert sigmoid(logit([0.25]))[0] == pytest.approx(0.25)


def test_reliability_by_hand() -> None:
    p = np.array([0.1, 0.1, 0.9, 0.9])
    found = reliability(p, np.array([0, 0, 1, 0]))
    assert [row["windows"] for row in found["bins"]] == [2, 2]
    assert found["ece"] == pytest.approx(0.5 * 0.1 + 0.5 * 0.4)
    assert found["brier"] == pytest.approx((0.01 * 3 + 0.81) / 4)
    assert sum(row["windows"] for row in reliability([0.0, 1.0], np.array([0, 1]))["bins"]) == 2
