"""A measurement is repeated a few times and no more."""

import pytest
from measured import TRIES, Measured


def at_least(least):
    def test(seen):
        assert seen >= least

    return test


def test_one_that_passes_is_kept_and_one_that_fails_is_taken_again():
    numbers = iter(range(100))
    measured = Measured(lambda: next(numbers))
    measured.check(at_least(0))
    measured.check(at_least(0))
    assert next(numbers) == 1
    measured.check(at_least(TRIES))
    assert next(numbers) == TRIES + 1


def test_what_always_fails_fails():
    taken = []
    with pytest.raises(AssertionError):
        Measured(lambda: taken.append(1) or 0).check(at_least(1))
    assert len(taken) == TRIES
