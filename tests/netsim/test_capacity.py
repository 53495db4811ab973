"""Traces of links: cut, split, summed up, made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from data.errors import UserError
from data.ingest import Settings, ingest
from data.netsim import capacity, traces, wireless
from data.netsim.capacity import Trace
from data.netsim.wireless import KINDS

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def test_seconds_keep_the_volume_of_irregular_steps() -> None:
    trace = Trace("t", "cellular", np.array([0.0, 0.5, 1.25]), np.array([2.0, 4.0, 8.0]), 3.0)
    assert capacity.seconds(trace).tolist() == [3.0, 7.0, 8.0]


def test_statistics_of_a_link_that_is_on_and_off() -> None:
    rate = np.tile([8.0] * 6 + [0.0] * 2, 10)
    found = capacity.statistics(Trace("t", "wifi", np.arange(80.0), rate, 80.0))
    assert found["mean_mbps"] == 6.0
    assert found["variation"] == pytest.approx(np.sqrt(12.0) / 6)
    assert found["outage"] == 0.25
    assert found["longest_outage_s"] == 2.0
    assert found["change"] == pytest.approx(19 * 8 / 79 / 6)
    assert found["memory_1s"] > 0.3 > found["memory_5s"]


def test_traces_are_cut_where_they_are_silent_and_by_kind() -> None:
    time = np.concatenate([np.arange(70.0), np.arange(150.0, 230.0), np.arange(400.0, 410.0)])
    found = capacity._pieces("walk_wifi.csv:link", time, np.ones(160))
    assert [(t.name, t.length_s, t.kind) for t in found] == [
        ("walk_wifi.csv:link[0]", 70.0, "wifi"), ("walk_wifi.csv:link[1]", 80.0, "wifi")
    ]  # fmt: skip
    rate = np.ones(160)
    rate[69] = 0.0
    assert capacity._pieces("LTE", time, rate)[0].length_s == 230.0
    assert capacity.kind_of("udp_down_starlink.csv") == "satellite"
    assert capacity.kind_of("bus57.csv") == "cellular"


def _trace(name: str) -> Trace:
    return Trace(name, "wifi", np.arange(2.0), np.ones(2), 2.0)


def test_a_split_has_its_shares_and_keeps_pieces_together() -> None:
    names = [f"t{k}[{i}]" for k in range(400) for i in range(2)]
    train, validation, test = capacity.split([_trace(n) for n in names])
    assert 50 <= len(validation) / 2 <= 110
    assert 50 <= len(test) / 2 <= 110
    assert len(train) + len(validation) + len(test) == 800
    owners = [{t.name[:-3] for t in part} for part in (train, validation, test)]
    assert sum(map(len, owners)) == 400


@given(st.sets(st.text(max_size=12), max_size=30), st.sets(st.text(max_size=12), max_size=10))
def test_a_split_depends_on_names_alone(names: set[str], more: set[str]) -> None:
    """Each trace is in one part; neither order nor further traces move it."""
    parts = capacity.split([_trace(n) for n in sorted(names)])
    found = [[t.name for t in part] for part in parts]
    assert sorted(name for part in found for name in part) == sorted(names)
    whole = capacity.split([_trace(n) for n in sorted(names | more, reverse=True)])
    for part, other in zip(found, whole, strict=True):
        assert {*part} == {t.name for t in other} & names


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_made_traces_have_their_mean_and_their_seed(kind: str) -> None:
    first, again, other = (capacity.generated(kind, 12.0, seed) for seed in (1, 1, 2))
    assert capacity.seconds(first).mean() == pytest.approx(12.0, rel=0.02)
    assert np.array_equal(first.mbps, again.mbps)
    assert not np.array_equal(first.mbps, other.mbps)
    assert first.mbps.min() > 0


@pytest.mark.parametrize("count", [1, 2, 6000])
def test_rates_are_those_of_a_signal_librarys_filter_to_the_bit(count: int) -> None:
    rng = np.random.default_rng(7)
    memory = np.exp(-wireless.STEP_S / 35.0)
    noise = rng.normal(0.0, np.sqrt(1.0 - memory**2), count)
    noise[0] = rng.normal()
    found = wireless._process(np.random.default_rng(7), count, 35.0)
    assert found.tobytes() == lfilter([1.0], [1.0, -memory], noise).tobytes()


def test_kinds_differ_as_the_measured_ones_do() -> None:
    table = capacity.compare([], seeds=40)
    middle = {kind: {k: v[2] for k, v in sides["generated"].items() if k != "traces"}
              for kind, sides in table.items()}  # fmt: skip
    assert middle["wifi"]["outage"] > 0.05 > middle["cellular"]["outage"]
    assert middle["wifi"]["longest_outage_s"] > 2 * middle["cellular"]["longest_outage_s"]
    for kind in capacity.KINDS:
        assert 0.3 < middle[kind]["variation"] < 0.9
        assert 0.7 < middle[kind]["memory_1s"] < 0.95


def test_measured_traces_are_shown_beside_generated_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(f"{t} {3 + t % 5}\n" for t in range(100))
    (tmp_path / "bus.txt").write_text(lines, encoding="utf-8")
    ingest([tmp_path / "bus.txt"], tmp_path / "out", settings=Settings(jobs=1))
    command = ["--compare", str(tmp_path / "out"), "--seeds", "3", "--json"]
    assert capacity.main(command) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["cellular"]["measured"]["mean_mbps"] == [5.0] * 5
    assert "measured" not in table["wifi"]
    assert capacity.main(command[:-1]) == 0
    assert "cellular, measured: 1 traces" in capsys.readouterr().out
    assert capacity.main(["--compare", str(tmp_path)]) == 2
    assert "not an ingested directory" in capsys.readouterr().err


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'wifi-varied'"):
        traces.generate("wifi-vared", 1.0, 1)
