import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.sbd.accumulate import VerdictSettings, accumulate, decide, fit, last_of_each
from models.stats.calibration import sigmoid


def test_accumulation_by_hand() -> None:
    group = np.array([4, 4, 4, 9, 9])
    state = accumulate([1.0, 2.0, -4.0, 1.0, 1.0], group, decay=0.5, temperature=0.5)
    np.testing.assert_allclose(state, [0.5, 1.25, -1.375, 0.5, 0.75])
    assert last_of_each(group).tolist() == [2, 4]
    assert last_of_each(np.empty(0, np.int64)).size == 0


def test_verdicts_and_their_limit() -> None:
    limit = VerdictSettings(confidence=0.9).limit
    assert sigmoid(limit) == pytest.approx(0.9)
    assert decide([limit, limit - 1e-9, 0.0, -limit], limit).tolist() == [1, -1, -1, 0]


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=30),
    st.floats(0.1, 1),
    st.floats(0.1, 1),
)
def test_a_connection_does_not_see_another(
    odds: list[float], decay: float, temperature: float
) -> None:
    alone = accumulate(odds, np.zeros(len(odds), np.int64), decay, temperature)
    behind = accumulate([9.0, *odds], np.array([0] + [1] * len(odds)), decay, temperature)
    np.testing.assert_allclose(behind[1:], alone)


def _probabilities(rng: np.random.Generator, independent: bool) -> tuple[np.ndarray, ...]:
    y = np.repeat(rng.integers(0, 2, 300), 8)
    group = np.repeat(np.arange(300), 8)
    # Evidence with a log-odds of mean 1 and variance 2 is calibrated on its own.
    noise = rng.normal(0, np.sqrt(2), 2400 if independent else 300)
    noise = noise if independent else np.repeat(noise, 8)
    return sigmoid((2 * y - 1) + noise), y, group


def test_windows_that_repeat_each_other_are_tempered() -> None:
    rng = np.random.default_rng(0)
    same = fit(*_probabilities(rng, independent=False), confidence=0.9)
    fresh = fit(*_probabilities(rng, independent=True), confidence=0.9)
    # Eight copies carry the evidence of one: the steady state must not exceed about one.
    weight = sum(same.temperature * same.decay**i for i in range(8))
    assert weight < 2.0
    assert fresh.temperature >= 0.7
    assert fresh.decay >= 0.9


def test_confident_verdicts_are_as_right_as_they_say() -> None:
    rng = np.random.default_rng(2)
    settings = fit(*_probabilities(rng, independent=False), confidence=0.9)
    p, y, group = _probabilities(np.random.default_rng(3), independent=False)
    from models.sbd.evaluate.scores import connection_state

    verdict = decide(connection_state(p, group, settings), settings.limit)
    said = verdict >= 0
    assert 0.1 < said.mean() < 0.95
    assert (verdict == y)[said].mean() > 0.88
