from itertools import pairwise

import numpy as np
import pytest

from features.params import SbdParams
from features.windows import windows

PARAMS = SbdParams()


def _cut(events, until_us):
    return {
        subflow: {
            name: tuple(x[: np.searchsorted(times, until_us)] for x in (times, values))
            for name, (times, values) in variables.items()
        }
        for subflow, variables in events.items()
    }


def test_windows_follow_one_another_from_the_later_first_congestion(connection):
    row, events = connection(1)
    found, reason = windows(row, events, PARAMS)
    assert reason is None
    entries = [v["ca_state"][0][v["ca_state"][1] == 3][0] for v in events.values()]
    assert found[0].start_us == max(entries)
    assert [w.index for w in found] == list(range(len(found)))
    for before, after in pairwise(found):
        assert after.start_us == before.end_us
    for w in found:
        assert w.min_rtt_us == (20_000, 50_000)
        assert w.end_us - w.start_us == 50 * 50_000
        assert w.step_us == 20_000
        np.testing.assert_array_equal(w.history_rtt_us[:, -125:], w.rtt_us)
        assert w.history_rtt_us.shape[1] == 125 * (1 + min(w.index, PARAMS.history_windows))
        assert w.rtt_us.shape == w.congested.shape == w.throughput_bps.shape == (2, 125)
    last = min(v["rtt_us"][0][-1] for v in events.values())
    assert found[-1].end_us <= last < found[-1].end_us + 50 * 50_000


def test_a_window_knows_nothing_of_what_comes_after_it(connection):
    row, events = connection(2, shared=False)
    events[2]["rtt_us"][1][-200:] = 3_000  # a smaller RTT near the end
    full, _ = windows(row, events, PARAMS)
    for k in (1, 3):
        part, _ = windows(row, _cut(events, full[k].end_us + 100_000), PARAMS)
        assert len(part) == k + 1
        for a, b in zip(part, full, strict=False):
            assert (a.start_us, a.end_us, a.min_rtt_us) == (b.start_us, b.end_us, b.min_rtt_us)
            for name in ("rtt_us", "congested", "throughput_bps", "history_rtt_us"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_wifi_is_the_labels_port_or_the_smaller_rtt(connection):
    row, events = connection(3)
    assert windows(row, events, PARAMS)[0][0].min_rtt_us == (20_000, 50_000)
    named = {**row, "wifi_sport": "40002"}
    assert windows(named, events, PARAMS)[0][0].min_rtt_us == (50_000, 20_000)
    unknown = {**row, "wifi_sport": "1"}
    assert windows(unknown, events, PARAMS)[0][0].min_rtt_us == (20_000, 50_000)


def test_of_three_subflows_the_busiest_two(connection):
    row, events = connection(4)
    events[7] = {"rtt_us": (np.array([5]), np.array([1000]))}
    assert windows(row, events, PARAMS)[0][0].min_rtt_us == (20_000, 50_000)


def test_srtt_stands_in_and_the_window_says_so(connection):
    row, events = connection(5)
    events[1]["srtt_us"] = events[1].pop("rtt_us")
    assert windows(row, events, PARAMS)[0][0].rtt_kind == "mixed"
    events[2]["srtt_us"] = events[2].pop("rtt_us")
    assert windows(row, events, PARAMS)[0][0].rtt_kind == "srtt"


def _drop(*names):
    def change(events):
        for name in names:
            events[1].pop(name)

    return change


def _calm(events):
    events[2]["ca_state"][1][:] = 1


def _late(events):
    events[2]["ca_state"] = (np.array([29_000_000]), np.array([3]))


def _one(events):
    del events[2]


def _no_states(events):
    del events[1]["ca_state"], events[2]["ca_state"]


def _early(events):
    for subflow in (1, 2):
        events[subflow]["ca_state"] = (np.array([-1]), np.array([3]))


def _idle(events):
    times, values = events[2]["rtt_us"]
    keep = np.r_[0, times.size - 1]
    events[2]["rtt_us"] = (times[keep], values[keep])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_one, "fewer than two subflows"),
        (_drop("rtt_us"), "no RTT on both subflows"),
        (_drop("ack"), "no ACK numbers or throughput on both subflows"),
        (_no_states, "no congestion state"),
        (_calm, "never congested on both subflows"),
        (_early, "no RTT before congestion"),
        (_late, "too short for one window"),
        (_idle, "a subflow idle in every window"),
    ],
)
def test_why_there_is_no_window(connection, change, reason):
    row, events = connection(6)
    change(events)
    assert windows(row, events, PARAMS) == ([], reason)


def test_grid_is_bounded_for_very_unlike_paths(connection):
    row, events = connection(7, base_us=(300, 90_000))
    w = windows(row, events, PARAMS)[0][0]
    assert w.rtt_us.shape[1] <= PARAMS.max_points
