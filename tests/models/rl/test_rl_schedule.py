"""What falls falls as it is asked to, from its first value to its last."""

import math

import pytest

from models.rl import agents, schedule, training


def rates(steps, **changes):
    settings = agents.settings(
        "matrix", {"steps": 1_000, "rate": 1e-2, "last_rate": 1e-3} | changes
    )
    return [schedule.rate(settings.model_dump(), n) for n in steps]


def test_a_rate_falls_in_a_line_or_along_half_a_wave():
    steps = (0, 250, 500, 1_000, 5_000)
    assert rates(steps) == pytest.approx([1e-2, 7.75e-3, 5.5e-3, 1e-3, 1e-3])
    wave = 1e-3 + 9e-3 * (1 + math.cos(math.pi / 4)) / 2
    assert rates(steps, schedule="cosine") == pytest.approx([1e-2, wave, 5.5e-3, 1e-3, 1e-3])
    assert rates((0, 1_000), rate=0.0) == [0.0, 0.0], "no rate rises"


def test_table_1_is_at_its_least_rate_after_113_stairs():
    settings = agents.settings("tcco-printed", {}).model_dump()
    found = [schedule.rate(settings, n) for n in (0, 9, 10, 19, 20, 1_129, 1_130, 60_000)]
    assert found[:5] == pytest.approx([1e-4, 1e-4, 0.96e-4, 0.96e-4, 0.96**2 * 1e-4])
    assert found[5] == pytest.approx(0.96**112 * 1e-4)
    assert found[5] > 1e-6
    assert found[6:] == [1e-6, 1e-6]


def test_what_being_undecided_is_worth_falls_with_the_rate():
    given = {"steps": 1_000, "entropy_weight": 0.02, "last_entropy_weight": 0.0}

    def weights(**changes):
        settings = agents.settings("recall", given | changes).model_dump()
        return [schedule.entropy_weight(settings, n) for n in (0, 250, 1_000)]

    assert weights() == pytest.approx([0.02, 0.015, 0.0])
    cosine = 0.02 * (1 + math.cos(math.pi / 4)) / 2
    assert weights(schedule="cosine") == pytest.approx([0.02, cosine, 0.0])
    assert weights(last_entropy_weight=None) == [0.02] * 3


def test_a_learner_keeps_to_its_schedules():
    case = {"steps": 600, "num_envs": 8, "rows": 20, "window": 10, "schedule": "cosine",
            "last_entropy_weight": 0.0}  # fmt: skip
    params = agents.settings("recall", case)
    algorithm = training.start("recall", params)
    try:
        algorithm.train()
        settings, steps = params.model_dump(), algorithm.steps
        assert 0 < steps < 600
        used = algorithm.learner.optimiser.param_groups[0]["lr"]
        assert used == pytest.approx(schedule.rate(settings, steps))
        assert used < params.rate
        assert schedule.entropy_weight(settings, algorithm.learner.done) < 0.01
    finally:
        algorithm.stop()


def test_exploring_falls_by_a_share_a_step_where_it_is_asked_to():
    case = {"epsilon": 0.9, "epsilon_decay": 0.995, "last_epsilon": 0.1, "num_envs": 8}
    algorithm = training.start("matrix", agents.settings("matrix", case))
    try:
        found = []
        for steps in (0, 100, 10_000):
            algorithm.steps = steps
            found.append(algorithm.epsilon)
        assert found == pytest.approx([0.9, 0.9 * 0.995**100, 0.1])
    finally:
        algorithm.stop()
