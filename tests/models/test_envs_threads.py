"""How threads share out environments."""

import numpy as np

from models.envs.threads import Shares


def test_own_longest_first_then_the_shortest_of_others() -> None:
    shares = Shares(6, 2)
    shares.home[:] = [0, 1, 0, 1, 0, 1]
    shares.work[:] = [5, 40, 30, 20, 10, 60]
    shares.plan()
    assert shares.order.tolist() == [[2, 4, 0, 3, 1, 5], [5, 1, 3, 0, 4, 2]]
    assert not shares.work.any()


def test_every_thread_looks_at_every_environment_once() -> None:
    rng = np.random.default_rng(3)
    shares = Shares(50, 3)
    for _ in range(20):
        shares.work[:] = rng.integers(0, 9, 50)
        shares.home[:] = rng.integers(0, 3, 50)
        shares.plan()
        assert (np.sort(shares.order, axis=1) == np.arange(50)).all()


def test_through_when_every_thread_has_said_so() -> None:
    shares = Shares(4, 2)
    shares.through[0] = 1
    assert not shares.all_through()
    shares.through[0] = 2
    assert shares.all_through()
    shares.rewind()
    assert not shares.all_through()
