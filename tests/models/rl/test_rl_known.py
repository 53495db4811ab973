"""The tiny problems keep the contract of a batch, and their optima are what they say."""

import numpy as np
import pytest

from models.rl.known import Matrix, Recall


def follow(env, act, steps):
    """Rewards of all steps, [steps, N]."""
    paid = []
    for _ in range(steps):
        env.step(act(env))
        paid.append(env.rewards.sum(1))
    return np.array(paid)


class Knowing:
    """Repeats the cue that it has seen."""

    def __init__(self, lanes):
        self.cue = np.zeros(lanes, int)

    def __call__(self, env):
        shown = env.observations[:, 0, :2]
        self.cue = np.where(shown.any(1), shown.argmax(1), self.cue)
        return self.cue[:, None]


def test_who_remembers_the_cue_gets_one_an_episode_and_who_guesses_a_half():
    env = Recall(64, delay=3)
    env.reset(1)
    # An episode's four steps and the one that begins the next.
    paid = follow(env, Knowing(64), 5 * 20)
    assert paid.sum() == 64 * 20
    env.reset(1)
    guessed = follow(env, lambda e: np.zeros((64, 1), int), 5 * 20)
    assert guessed.sum() == pytest.approx(64 * 20 / 2, rel=0.1)


def test_the_best_of_the_table_pays_one_a_step_and_is_the_best_of_each_parts_mean():
    env = Matrix(8)
    right = {0: [0, 0], 1: [2, 1]}
    paid = follow(env, lambda e: np.array([right[int(s[1])] for s in e.observations[:, 0]]), 12)
    assert paid.sum() == pytest.approx(8 * 10)
    for state, (first, second) in right.items():
        assert Matrix.PAY[state].mean(1).argmax() == first
        assert Matrix.PAY[state].mean(0).argmax() == second


@pytest.mark.parametrize("kind", [Recall, Matrix])
def test_an_episode_depends_on_its_environment_and_the_seed_alone(kind):
    few, many = kind(2), kind(5)
    for env in (few, many):
        env.reset(3)
    for _ in range(13):
        assert (many.observations[:2] == few.observations).all()
        for env in (few, many):
            env.step(np.ones((env.num_envs, len(env.kinds)), int))
    few.reset(4)
    assert not (many.observations[:2] == few.observations).all()


@pytest.mark.parametrize("kind", [Recall, Matrix])
def test_it_goes_on_where_its_state_was_taken(kind):
    env = kind(6)
    env.reset(5)
    act = lambda e: np.ones((6, len(e.kinds)), int)  # noqa: E731
    follow(env, act, 7)
    state = env.get_state()
    first = follow(env, act, 20)
    other = kind(6)
    other.set_state(state)
    assert (follow(other, act, 20) == first).all()


def test_an_action_that_a_part_lacks_is_refused_unless_it_is_ignored():
    env = Matrix(1, length=1)
    env.step(np.array([[2, 1]]))
    assert env.terminated[0]
    env.step(np.array([[9, 9]]))
    assert env.started[0]
    with pytest.raises(ValueError, match="doesn't have this action"):
        env.step(np.array([[0, 2]]))
