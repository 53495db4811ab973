"""The 18 features: names as in Table 3, values by definition, ranges as promised."""

from dataclasses import replace

import numpy as np
import pytest
from tslearn.metrics import dtw as reference

from features import sbd
from features.params import SbdParams
from features.smartsbd import FEATURES, compute
from features.windows import windows

TABLE_3 = [
    "RTT_ED",
    "CState_ED",
    "Thpt_ED",
    "RTT_DTWD",
    "CState_DTWD",
    "Thpt_DTWD",
    "RTT_CState_ED",
    "CState_Thpt_ED",
    "RTT_Thpt_ED",
    "RTT_CState_DTWD",
    "CState_Thpt_DTWD",
    "RTT_Thpt_DTWD",
    "RTT_CState_Thpt_ED",
    "RTT_CState_Thpt_DTWD",
    "Min_RTT_Ratio",
    "RTT_SD_Ratio",
    "CState_SD_Ratio",
    "Thpt_SD_Ratio",
]


def _named(window):
    return dict(zip(TABLE_3, compute([window])[0], strict=True))


def _swap(window):
    return replace(
        window,
        min_rtt_us=window.min_rtt_us[::-1],
        rtt_us=window.rtt_us[::-1],
        congested=window.congested[::-1],
        throughput_bps=window.throughput_bps[::-1],
        history_rtt_us=window.history_rtt_us[::-1],
        traces=window.traces[::-1],
    )


@pytest.fixture(scope="module")
def found(connection):
    return [
        window
        for seed in range(2)
        for shared in (True, False)
        for window in windows(*connection(seed, shared), SbdParams())[0][:3]
    ]


def test_names_are_the_papers():
    assert [f.name for f in FEATURES] == TABLE_3


def test_values_by_definition(found):
    window = found[4]
    rtt, state, rate = window.rtt_us / 1e5, window.congested, window.throughput_bps / 1e7
    series = {"RTT": rtt, "CState": state, "Thpt": rate}
    values = _named(window)
    for name in TABLE_3[:14]:
        *parts, kind = name.split("_")
        a, b = np.stack([series[p] for p in parts], axis=-1)
        expected = np.linalg.norm(a - b) if kind == "ED" else reference(a, b)
        assert values[name] == pytest.approx(expected, abs=1e-9), name
    assert values["Min_RTT_Ratio"] == 2.5
    for part, pair in series.items():
        assert values[f"{part}_SD_Ratio"] == pytest.approx(pair[1].std() / pair[0].std())


def test_swapped_subflows_turn_ratios_over_and_leave_distances(found):
    plain, swapped = compute(found), compute([_swap(w) for w in found])
    np.testing.assert_allclose(swapped[:, :14], plain[:, :14], atol=1e-9)
    np.testing.assert_allclose(swapped[:, 14:] * plain[:, 14:], 1, atol=1e-9)


def test_a_batch_is_its_windows(found):
    np.testing.assert_array_equal(compute(found), np.concatenate([compute([w]) for w in found]))


def test_constant_series_have_defined_values(found):
    w = found[0]
    still = np.full_like(w.rtt_us, 30_000.3)
    calm = replace(w, rtt_us=still, congested=still * 0, throughput_bps=still)
    values = _named(calm)
    assert all(values[n] == 0 for n in TABLE_3[:14])
    assert all(values[n] == 1 for n in TABLE_3[15:])
    wild = replace(calm, rtt_us=np.stack([still[0], w.rtt_us[1]]))
    assert _named(wild)["RTT_SD_Ratio"] == 1024


@pytest.mark.parametrize("family", sbd.FAMILIES)
def test_entries_fit_32_bits_and_are_documented(family):
    features = sbd.features_of(family)
    assert len({f.name for f in features}) == len(features)
    for f in features:
        assert f.low < f.high
        assert max(abs(f.low), abs(f.high)) * f.scale < 2**31
        assert f.doc
        assert f.source
        assert f.unit


@pytest.mark.parametrize("family", sbd.FAMILIES)
def test_values_are_finite_and_in_range(family, found):
    features = sbd.features_of(family)
    values = sbd.compute(family, found)
    assert np.isfinite(values).all()
    assert (values >= [f.low for f in features]).all()
    assert (values <= [f.high for f in features]).all()
    assert sbd.compute(family, []).shape == (0, len(features))
