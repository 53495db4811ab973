"""A player's buffer, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from data.video.playback import FROZEN_MSE, coding_mse, play, psnr_db


def test_the_curve_is_the_published_one() -> None:
    assert float(psnr_db(coding_mse(2.0))) == pytest.approx(31.47, abs=0.01)
    assert (np.diff(psnr_db(coding_mse(np.linspace(0.3, 12, 50)))) > 0).all()


def test_a_stream_that_arrives_in_time_never_stalls() -> None:
    media = 1.25 * np.arange(1, 101)[:, None] * 0.1
    seen = play(media, 0.1, 1.0, 2.0, np.array([2.0]))
    assert seen.startup_s[0] == pytest.approx(0.8)
    assert seen.stalls[0] == seen.stalled_s[0] == 0
    assert seen.psnr_db[0] == pytest.approx(float(psnr_db(coding_mse(2.0))))


def test_a_gap_stalls_once_and_costs_quality() -> None:
    # Two seconds of media at once, none for four seconds, then enough.
    media = np.where(np.arange(1, 101) * 0.1 <= 4.0, 2.0, 20.0)[:, None]
    seen = play(media, 0.1, 1.0, 2.0, np.array([2.0]))
    assert seen.stalls[0] == 1
    assert seen.stalled_s[0] == pytest.approx(2.0, abs=0.11)
    share = seen.stalled_s[0] / 8.0
    mse = share * FROZEN_MSE + (1 - share) * coding_mse(2.0)
    assert seen.psnr_db[0] == pytest.approx(float(psnr_db(mse)), abs=0.05)


def test_nothing_arrives_nothing_is_shown() -> None:
    seen = play(np.zeros((50, 1)), 0.1, 1.0, 2.0, np.array([1.0]))
    assert seen.startup_s[0] == pytest.approx(5.0)
    assert seen.buffer_s[0] == 0
    assert seen.psnr_db[0] == pytest.approx(20.0)
