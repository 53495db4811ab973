"""Labs with three paths: what a scenario may say, whose subflow is whose, and one short run."""

import csv
import os
import shutil
import socket
import struct
from itertools import count
from pathlib import Path

import pytest
import yaml
from measured import Measured

from data.errors import UserError
from data.ingest import ingest
from data.lab import labels, plan, probes, run, scenario, topology, traffic, validate
from data.lab.process import LabError
from data.lab.record import _bottlenecks, _numbers
from data.store import iter_connections, read_connections

SLOT = 96
QUICK = {
    "case": "quick",
    "cc": "reno",
    "duration_s": 5,
    "stages": {
        "pair": {"rate_mbps": 4, "delay_ms": 4, "queue_bytes": 12000},
        "alone": {"rate_mbps": 3, "delay_ms": 5, "queue_bytes": 12000},
        "back": {"delay_ms": 4},
    },
    "paths": {
        "wifi": ["pair"],
        "lte": ["alone"],
        "wired": ["pair"],
        "wifi_back": ["back"],
        "lte_back": ["back"],
        "wired_back": ["back"],
    },
    "bottleneck": {"wifi": "pair", "lte": "alone", "wired": "pair"},
}


def _load(tmp_path, **change):
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump({**QUICK, **change}))
    return scenario.load(path)


def test_two_of_three_sharing_is_neither_label(tmp_path):
    drawn = _load(tmp_path)
    assert drawn.label is None
    assert drawn.data_paths == ("wifi", "lte", "wired")
    for label in ("SB", "NSB"):
        with pytest.raises(UserError, match="there is no label"):
            _load(tmp_path, label=label)
    with pytest.raises(UserError, match="label is missing"):
        _load(tmp_path, bottleneck=dict.fromkeys(("wifi", "lte", "wired"), "pair"),
              paths=QUICK["paths"] | {"lte": ["pair"]})  # fmt: skip
    paths = {k: v for k, v in QUICK["paths"].items() if k != "wired_back"}
    with pytest.raises(UserError, match="wired_back is missing"):
        _load(tmp_path, paths=paths)


def test_the_third_device_is_made_where_a_scenario_has_it(tmp_path):
    lab = topology.Lab(5)
    three = topology.emulator_config(_load(tmp_path), lab, tmp_path, 1)
    assert "tun wired c" in three
    assert "path wired srv src=10.0.3.2 dst=10.0.9.2 stages=pair" in three
    two = topology.emulator_config(scenario.load("smartsbd-sb"), lab, tmp_path, 1)
    assert "wired" not in two


def test_the_campaign_has_every_way_to_share():
    drawn = {s.name: s.draw(3) for s in plan.sources(plan.load("3sub"))}
    ways = {(d.case, d.cc): d.bottlenecks for d in drawn.values()}
    assert len(ways) == len(drawn) == 10
    for (case, _), (wifi, lte, wired) in ways.items():
        shared = {"wifi-lte": wifi == lte, "wifi-wired": wifi == wired, "lte-wired": lte == wired}
        expected = {"all-shared": set(shared), "all-separate": set()}.get(case, {case})
        assert {pair for pair, same in shared.items() if same} == expected


def test_source_ports_tell_whose_subflow_is_whose(tmp_path):
    drawn = _load(tmp_path)
    subflows = {"1": {"sport": 100}, "2": {"sport": 300}, "3": {"sport": 200}}
    sports = {"10.0.1.2": 100, "10.0.2.2": 200, "10.0.3.2": 300}
    number = _numbers(drawn, subflows, sports)
    assert number == {"wifi": "1", "lte": "3", "wired": "2"}
    assert _bottlenecks(drawn, number) == {"bottlenecks": "pair,pair,alone"}
    with pytest.raises(LabError, match="over wired"):
        _numbers(drawn, subflows, {**sports, "10.0.3.2": 301})
    two = scenario.load("smartsbd-sb")
    assert _numbers(two, {}, None) == {"wifi": "1", "lte": "2"}
    assert _bottlenecks(two, {"wifi": "1", "lte": "2"}) == {}


def test_labels_say_who_shares_only_where_there_are_three(tmp_path):
    record = {"id": "a", "dataset": "d", "valid": True, "reasons": [], "label": None}
    labels.write_labels(tmp_path, [record])
    with (tmp_path / "labels.csv").open() as file:
        assert "bottlenecks" not in next(csv.DictReader(file))
    labels.write_labels(tmp_path, [record | {"bottlenecks": "pair,pair,alone"}])
    with (tmp_path / "labels.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["bottlenecks"] == "pair,pair,alone"
    assert row["label"] == ""


def test_ftrace_does_not_tell_three_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "choose", lambda wanted: "ftrace")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UserError, match="BPF probe"):
        run.run(_load(tmp_path), tmp_path, SLOT, 1)


def why_not():
    if os.geteuid():
        return "needs root (network namespaces, BPF)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    if not shutil.which("ip"):
        return "needs iproute2: apt-get install -y iproute2"
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, traffic.IPPROTO_MPTCP).close()
    except OSError as error:
        return f"needs MPTCP in the kernel: {error}"
    return probes.why_no_bpf()


@pytest.mark.kernel
def test_three_subflows_of_a_real_connection(tmp_path, monkeypatch):
    if reason := why_not():
        print(f"no run with three subflows: {reason}")
        pytest.skip(reason)
    # A busy machine may make the emulator late; whose subflow is whose doesn't depend on it.
    monkeypatch.setattr(validate, "host_reasons", lambda *_: [])
    folders = (tmp_path / str(i) for i in count())
    Measured(lambda: _one_run(_load(tmp_path), next(folders))).check(_are_three_subflows)


def _one_run(drawn, folder):
    return run.run(drawn, folder / "raw", SLOT, 1, probe="bpf"), folder


def _are_three_subflows(measured):
    result, folder = measured
    assert result.path is not None, result.record
    assert "failed" not in result.reasons
    labels.write_labels(folder / "raw", [result.record | {"valid": True, "dataset": ""}])
    ingest([folder / "raw"], folder / "events")
    (row,) = read_connections(folder / "events").iter_rows(named=True)
    names = row["bottlenecks"].split(",")
    ((_, events),) = iter_connections(folder / "events")
    assert sorted(events) == [1, 2, 3]
    # The two that share a link see one queue, which the third's RTT knows nothing of.
    assert sorted(names) == ["alone", "pair", "pair"]
    assert all(variables["rtt_us"][0].size > 100 for variables in events.values())
    acked = {n: int(variables["ack"][1].max()) for n, variables in events.items()}
    alone = names.index("alone") + 1
    mbps = {n: 8 * total / 5e6 for n, total in acked.items()}
    assert 0.5 < mbps[alone] <= 3.2
    assert sum(mbps.values()) - mbps[alone] <= 4.2


def test_subflow_addresses_are_read_as_the_kernel_writes_them(monkeypatch):
    class Libc:
        def getsockopt(self, fd, level, option, buffer, length):
            header = struct.pack("4I", 16, 2, 256, 256)
            flows = b""
            for last, port in ((1, 1111), (2, 2222)):
                local = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
                local += bytes([10, 0, last, 2])
                flows += local.ljust(128, b"\0") + bytes(128)
            buffer[: len(header + flows)] = header + flows
            return 0

    monkeypatch.setattr(traffic.ctypes, "CDLL", lambda *a, **k: Libc())
    with socket.socket() as sock:
        assert traffic.source_ports(sock) == {"10.0.1.2": 1111, "10.0.2.2": 2222}
