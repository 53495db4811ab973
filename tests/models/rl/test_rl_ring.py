"""What is drawn from the ring is what went in, row by row and in its order."""

import numpy as np
import pytest

from models.rl import tree
from models.rl.fragment import Fragment
from models.rl.ring import Ring


def fragment(start, rows, lanes, parts=2, features=3, worker=0, fresh=False):
    """Rows whose rewards count up: 1000 times the lane plus the row."""
    found = Fragment.empty(worker, fresh, rows, (lanes, parts, features))
    number = np.arange(start, start + rows)[:, None] + 1000 * np.arange(lanes)[None]
    found.rewards[:] = number
    found.observations[:] = number[:, :, None, None] + np.arange(6).reshape(2, 3) / 10
    found.actions[:] = number[:, :, None] % 3
    found.mask[:], found.terminated[:], found.over[:] = True, False, False
    return found


def filled(rows, capacity=120, lanes=4, length=3, alpha=0.0, step=5):
    ring = Ring(capacity, lanes, 2, 3, length=length, seed=1, alpha=alpha)
    for start in range(0, rows, step):
        ring.add([fragment(start, step, lanes)])
    return ring


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("rows", [5, 20, 30, 45, 95])
def test_a_window_is_rows_that_followed_each_other(rows, alpha):
    ring = filled(rows, alpha=alpha)
    drawn = ring.sample(500)
    first = drawn.rewards[:, :1]
    assert (drawn.rewards == first + np.arange(4)).all()
    assert (drawn.observations == drawn.rewards[..., None, None] + ring_pattern()).all()
    assert (drawn.actions == drawn.rewards[..., None] % 3).all()
    kept = np.unique(drawn.rewards % 1000)
    # All that the ring holds is drawn but what the end of the arrays or the seam cuts off.
    assert kept.min() >= max(0, rows - 30)
    assert kept.max() == rows - 1
    assert set(drawn.rewards[:, 0] // 1000) == {0, 1, 2, 3}


def ring_pattern():
    return (np.arange(6).reshape(2, 3) / 10).astype(np.float32)


def test_even_draws_are_even():
    ring = filled(95)
    places, counts = np.unique(ring.sample(40_000).places, return_counts=True)
    assert len(places) == ring.starts * 4
    expected = 40_000 / len(places)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_windows_are_drawn_as_their_priorities_say_and_weights_make_up_for_it():
    ring = filled(25, alpha=1.0)
    places = ring.sample(2_000).places
    ring.set_priorities(places, np.where(places == places[0], 9.0, 1.0).astype(np.float32))
    drawn = ring.sample(20_000, beta=1.0)
    others = len(np.unique(places)) - 1
    assert (drawn.places == places[0]).mean() == pytest.approx(9 / (9 + others), rel=0.1)
    rare = drawn.weights[drawn.places != places[0]]
    assert drawn.weights[drawn.places == places[0]][0] == pytest.approx(rare[0] / 9, rel=1e-5)


def test_a_priority_of_what_was_overwritten_since_is_left():
    ring = filled(30, alpha=1.0)
    old = ring.sample(300).places
    ring.add([fragment(30, 5, 4)])
    ring.set_priorities(old, np.full(300, 50.0, np.float32))
    drawn = ring.sample(500)
    assert (drawn.rewards == drawn.rewards[:, :1] + np.arange(4)).all()


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_it_goes_on_with_the_same_draws(alpha):
    ring = filled(47, alpha=alpha)
    ring.sample(10)
    ring.set_priorities(ring.sample(8).places, np.arange(8, dtype=np.float32))
    other = Ring(120, 4, 2, 3, length=3, seed=9, alpha=alpha)
    other.set_state(ring.get_state())
    for one in (ring, other):
        one.add([fragment(47, 5, 4)])
    for _ in range(3):
        assert (ring.sample(16).rewards == other.sample(16).rewards).all()


def test_nothing_is_learned_across_the_place_where_a_runner_failed_or_began_anew():
    ring = Ring(200, 4, 2, 3, length=3, seed=1)
    ring.add([fragment(0, 5, 2, worker=1), fragment(0, 5, 2, worker=2)])
    ring.add([fragment(5, 5, 2, worker=1), None])
    ring.add([fragment(10, 5, 2, worker=1), fragment(50, 5, 2, worker=2, fresh=True)])
    over = ring.arrays["over"][:, :15]
    assert not over[:2].any()
    # The row before the gap knows no next one, and in the gap nothing was done.
    assert over[2:].nonzero()[1].tolist() == [4, 5, 6, 7, 8, 9] * 2


def test_each_parts_own_rewards_are_kept_where_they_are_asked_for():
    plain, ring = Ring(120, 4, 2, 3, length=3), Ring(120, 4, 2, 3, length=3, seed=1, own=True)
    piece = fragment(0, 20, 4)
    piece.own[:] = piece.rewards[..., None] * [0.25, 0.75]
    for one in (plain, ring):
        one.add([piece])
    assert plain.sample(5).own is None
    other = Ring(120, 4, 2, 3, length=3, own=True)
    other.set_state(ring.get_state())
    for one in (ring, other):
        drawn = one.sample(50)
        assert (drawn.own == drawn.rewards[..., None] * [0.25, 0.75]).all()


def test_there_is_nothing_to_draw_before_a_whole_window():
    ring = Ring(100, 2, 2, 3, length=5)
    ring.add([fragment(0, 5, 2)])
    with pytest.raises(ValueError, match="no whole window"):
        ring.sample(1)


def test_a_tree_holds_sums_and_draws_no_empty_leaf():
    one = tree.new(5)
    tree.put(one, np.array([0, 3, 4]), np.array([1.0, 2.0, 1.0]))
    assert one[1] == 4.0
    leaves, weights = tree.draw(one, np.random.default_rng(0).random(4000), 0.5)
    assert np.bincount(leaves, minlength=5).tolist() == pytest.approx([1000, 0, 0, 2000, 1000], 5)
    assert weights[leaves == 3][0] == pytest.approx(0.5**0.5)
    assert weights[leaves == 0][0] == 1.0
    assert set(leaves) == {0, 3, 4}
