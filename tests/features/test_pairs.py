"""Windows of three and more subflows: common times, every pair, nothing new for two."""

import numpy as np
import pytest

from data.errors import UserError
from data.labels import pair_label
from features.pairs import _cut, pair_windows
from features.params import SbdParams
from features.windows import first_congestion_us, trace, wifi_subflow, windows

PARAMS = SbdParams()


@pytest.fixture(scope="module")
def three(connection):
    """Subflows 1 and 2 of one queue, 3 and 4 of another connection's, all in one."""
    row, events = connection(1, shared=True, seconds=14.0)
    _, others = connection(2, shared=True, seconds=14.0, base_us=(30_000, 40_000))
    return row, {**events, 3: others[1], 4: others[2]}


def _of(found):
    return {(w.index, pair): w for pair, w in found}


def test_two_subflows_have_the_windows_they_always_had(connection):
    row, events = connection(5, shared=False, seconds=14.0)
    found, reason = pair_windows(row, events, PARAMS)
    expected, _ = windows(row, events, PARAMS)
    assert reason is None
    assert [pair for pair, _ in found] == [(1, 2)] * len(expected)
    # And so says the general rule, which pair_windows itself asks only for more of them.
    traces = {n: trace(v, PARAMS) for n, v in events.items()}
    entries = {n: first_congestion_us(t) for n, t in traces.items()}
    for (_, general), window in zip(
        _cut(traces, entries, wifi_subflow(row), PARAMS)[0], expected, strict=True
    ):
        assert (general.index, general.start_us, general.end_us) == (
            window.index, window.start_us, window.end_us,
        )  # fmt: skip
        for name in ("rtt_us", "congested", "throughput_bps", "history_rtt_us"):
            assert np.array_equal(getattr(general, name), getattr(window, name))


def test_pairs_of_a_window_share_its_time_and_grid(three):
    row, events = three
    found, reason = pair_windows(row, events, PARAMS)
    assert reason is None
    by_index = {}
    for pair, window in found:
        by_index.setdefault(window.index, {})[pair] = window
    assert sum(len(pairs) == 6 for pairs in by_index.values()) >= 2
    for pairs in by_index.values():
        spans = {(w.start_us, w.end_us, w.step_us, w.rtt_us.shape) for w in pairs.values()}
        assert len(spans) == 1
    last = max(index for index, _ in _of(found))
    window = by_index[last][2, 4]
    assert window.end_us - window.start_us == 50 * 50_000
    assert window.step_us == 20_000


def test_wifi_comes_first_and_else_the_shorter_path(three):
    row, events = three
    found, _ = pair_windows(row, events, PARAMS)
    last = max(index for index, _ in _of(found))
    smallest = {n: min(v["rtt_us"][1]) for n, v in events.items()}
    for pair in ((1, 2), (2, 3), (3, 4), (2, 4)):
        first, second = _of(found)[last, pair].min_rtt_us
        assert (first, second) == tuple(sorted(smallest[n] for n in pair))
    row = {**row, "wifi_sport": "99", "subflows": [{"subflow": 4, "sport": 99}]}
    named = _of(pair_windows(row, events, PARAMS)[0])[last, (3, 4)]
    assert named.min_rtt_us == (smallest[4], smallest[3])


def test_who_is_congested_later_is_a_member_from_the_next_window_on(three):
    row, events = three
    whole = pair_windows(row, events, PARAMS)[0]
    begin = min(w.start_us for _, w in whole)
    time_us, state = events[4]["ca_state"]
    late = time_us > begin + 3_000_000
    events = {**events, 4: {**events[4], "ca_state": (time_us[late], state[late])}}
    found = pair_windows(row, events, PARAMS)[0]
    entry = int(time_us[late][state[late] == 3][0])
    with_it = [w for pair, w in found if 4 in pair]
    assert with_it
    assert min(w.start_us for w in with_it) >= entry
    before = {pair for pair, w in found if w.start_us < entry}
    assert before == {(1, 2), (1, 3), (2, 3)}


def test_who_never_is_congested_is_no_member_and_who_ends_leaves(three):
    row, events = three
    calm = {**events[4], "ca_state": (np.array([0]), np.array([0]))}
    found, reason = pair_windows(row, {**events, 4: calm}, PARAMS)
    assert reason is None
    assert {pair for pair, _ in found} == {(1, 2), (1, 3), (2, 3)}
    cut = {name: (t[t < 8_000_000], v[t < 8_000_000]) for name, (t, v) in events[1].items()}
    found, _ = pair_windows(row, {**events, 1: cut}, PARAMS)
    assert max(w.end_us for pair, w in found if 1 in pair) <= 8_000_000
    assert max(w.end_us for pair, w in found) > 10_000_000


def test_reasons_for_no_window(three):
    row, events = three
    calm = {
        n: v if n == 1 else {**v, "ca_state": (np.array([0]), np.array([0]))}
        for n, v in events.items()
    }
    assert pair_windows(row, calm, PARAMS) == ([], "never congested on two subflows")
    silent = {n: v if n == 1 else {} for n, v in events.items()}
    assert pair_windows(row, silent, PARAMS)[1] == "no RTT on both subflows"
    assert pair_windows(row, {1: events[1]}, PARAMS)[1] == "fewer than two subflows"
    long = SbdParams(window_factor=1000)
    assert pair_windows(row, events, long)[1] == "too short for one window"


def test_labels_of_pairs():
    row = {"source": "s", "label": None, "bottlenecks": "a, a,b",
           "subflows": [{"subflow": n} for n in (2, 1, 5)]}  # fmt: skip
    assert pair_label(row, (1, 2)) == "SB"
    assert pair_label(row, (1, 5)) == pair_label(row, (2, 5)) == "NSB"
    assert pair_label({**row, "bottlenecks": None, "label": "SB"}, (1, 5)) == "SB"
    assert pair_label({"source": "s", "label": None}, (1, 2)) is None
    with pytest.raises(UserError, match="2 names for 3 subflows"):
        pair_label({**row, "bottlenecks": "a,b"}, (1, 2))
