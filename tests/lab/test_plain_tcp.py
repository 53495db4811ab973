"""Labs with one path of plain TCP: what a scenario may say, and one short run."""

import os
import shutil
from itertools import count

import pytest
import yaml
from measured import Measured

from data.errors import UserError
from data.lab import compact, figures, probes, run, scenario, validate
from data.lab.record import describe

SLOT = 95  # of no other test: they run side by side


def _load(tmp_path, **change):
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(scenario.read_yaml("linux-tcp") | change))
    return scenario.load(path)


@pytest.mark.parametrize(
    "change", [{"label": "SB"}, {"cc": "lia"}, {"cc": "mpcdg"}, {"first": "lte"}]
)
def test_what_needs_two_paths_is_refused(tmp_path, change):
    with pytest.raises(UserError, match="transport tcp: one path, wifi"):
        _load(tmp_path, **change)


def test_plain_tcp_has_one_path_and_no_label(tmp_path):
    drawn = _load(tmp_path)
    assert drawn.data_paths == ("wifi",)
    assert describe(drawn).keys() >= {"rtt_wifi_ms", "rate_wifi_mbps", "queue_wifi_bytes"}
    assert "rtt_lte_ms" not in describe(drawn)
    with pytest.raises(UserError, match="wifi_back is missing"):
        _load(tmp_path, paths={"wifi": ["link"]})


def why_not():
    if os.geteuid():
        return "needs root for network namespaces"
    return probes.why_no_bpf() if shutil.which("ip") else "needs iproute2: apt-get install iproute2"


@pytest.mark.kernel
def test_plain_tcp_beside_a_rival(tmp_path, monkeypatch):
    if reason := why_not():
        print(f"no run of plain TCP: {reason}")
        pytest.skip(reason)
    # A busy machine may make the emulator late; who sent what doesn't depend on it.
    monkeypatch.setattr(validate, "host_reasons", lambda *_: [])
    drawn = _load(tmp_path, duration_s=5, background=[{"over": "wifi", "cc": "reno"}])
    folders = (tmp_path / f"raw{i}" for i in count())
    runs = Measured(lambda: run.run(drawn, next(folders), SLOT, 1, name="one", probe="bpf"))
    runs.check(_is_beside_a_rival)


def _is_beside_a_rival(result):
    assert result.valid, result.record
    assert result.record["label"] is None
    events, meta = compact.expand(result.path)
    assert list(meta["subflows"]) == ["1"]
    assert set(events.subflow) == {1}
    found = result.record["figures"]
    assert figures.of(compact.series(events)).items() <= found.items()
    assert found["retransmitted_segments"] >= found["retransmits"]
    # The rival has its part of 8 Mbit/s, and neither sees less than the links' delay.
    rival = 8e-6 * result.record["traffic"]["background_bytes"][0] / 5.5
    assert 0.5 < found["goodput_mbps"] < 7.8
    assert found["goodput_mbps"] + rival > 5.0
    assert found["rtt_ms"] > 40 * 0.95
