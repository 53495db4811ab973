"""What trees see: ratios and changes by hand, episodes that begin, and ranges that hold."""

import numpy as np
import pytest

from features import derived, macc, nuwa, tcco
from features.derived import Change, Deriver, Ratio

OBSERVED = {
    ("tcco", 0): tcco.FEATURES,
    ("nuwa", 0): nuwa.FEATURES,
    ("macc", 0): macc.SENDER,
    ("macc", 1): macc.ROUTER,
}


def deriver(environment, kind=0, rows=1):
    return Deriver(environment, kind, OBSERVED[environment, kind], rows)


def named(one, found, name):
    return found[:, [entry.name for entry in one.entries].index(name)].tolist()


def test_ratios_of_a_subflow():
    one = deriver("tcco")
    # 100 Mbit/s and 24 ms hold 200 packets of 12,000 bits; the window is half of that.
    found = one.update(np.array([[50e3, 36e3, 100, 100e3, 24e3, 1]]), np.array([True]))
    assert named(one, found, "rtt_over_base") == [1536]
    assert named(one, found, "cwnd_over_held") == [512]
    assert named(one, found, "held_segments") == [200]
    assert named(one, found, "rate_over_peak") == [512]
    assert named(one, found, "rate_over_cwnd") == [1536]
    assert named(one, found, "expflag") == [1]


def test_changes_are_to_the_oldest_there_is_and_begin_anew():
    one = deriver("macc", 1, rows=2)
    values = np.stack([np.full(3, 10.0 * t) for t in range(30)])
    for t, row in enumerate(values):
        # The second queue's episode begins again at step 25.
        found = one.update(np.stack([row, row]), np.array([t == 0, t in (0, 25)]))
    assert named(one, found, "queue_packets_change_1") == [10, 10]
    assert named(one, found, "queue_packets_change_5") == [50, 40]
    assert named(one, found, "queue_packets_change_20") == [200, 40]


def test_extremes_last_for_an_episode():
    one = deriver("macc")
    rtts, begins = [0, 300, 200, 400, 400], [True, False, False, False, True]
    seen = [
        one.update(np.array([[5.0, 1.0, rtt]]), np.array([begin]))
        for rtt, begin in zip(rtts, begins, strict=True)
    ]
    assert [named(one, row, "least_rtt_us")[0] for row in seen] == [0, 300, 200, 200, 400]
    assert [named(one, row, "rtt_over_least")[0] for row in seen] == [0, 1024, 1024, 2048, 1024]


@pytest.mark.parametrize("key", OBSERVED, ids=str)
def test_values_stay_in_their_ranges_whatever_is_observed(key):
    one = deriver(*key, rows=50)
    rng = np.random.default_rng(1)
    width = sum(isinstance(entry, derived.Column) for entry in one.entries)
    low, high = (np.array([getattr(f, end) for f in one.features]) for end in ("low", "high"))
    assert len({f.name for f in one.features}) == len(one.features) == len(one.entries)
    assert np.abs([low, high]).max() <= derived.MOST
    for t in range(40):
        values = np.floor(10.0 ** rng.uniform(-2, 10, (50, width))) * (rng.random(width) < 0.8)
        found = one.update(values, np.full(50, t == 0))
        assert (low <= found).all()
        assert (found <= high).all()


def test_products_fit_64_bits():
    for key, observed in OBSERVED.items():
        high = {f.name: int(f.high) for f in derived.features(*key, observed)}
        for one in derived.entries(*key, observed):
            if isinstance(one, Ratio):
                for names, constant in ((one.top, one.times), (one.bottom, one.over)):
                    product = constant
                    for name in names:
                        product *= high[name]
                    assert product < 2**63
            if isinstance(one, Change):
                assert one.lag < derived.RING
