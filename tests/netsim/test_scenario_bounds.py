"""Scenarios that would never end, or fill the memory, are refused in one line before any work."""

import copy
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from data.errors import UserError
from data.netsim import runner, traces
from data.netsim import scenario as scenarios
from pipelines.cli import main

SMALL = {
    "duration_s": 2,
    "links": {
        "cell": {"rate_mbps": 8, "delay_ms": 10, "queue_packets": 30},
        "home": {"delay_ms": 10},
    },
    "flows": [{"name": "f", "paths": [{"forward": ["cell"], "back": ["home"]}]}],
}
CELL, FLOW = ("links", "cell"), ("flows", 0)
CROSS = {"path": ["cell"], "rate_mbps": 100_000, "packet_bytes": 1500}
ATTACKS = {
    "endless rate": (*CELL, "rate_mbps", float("inf")),
    "no number": (*CELL, "rate_mbps", float("nan")),
    "negative rate": (*CELL, "rate_mbps", -3),
    "rate below a bit a second": (*CELL, "rate_mbps", 1e-9),
    "rate beyond": (*CELL, "rate_mbps", 1e9),
    "rate to a power": (*CELL, "rate_mbps", 10**400),
    "thirty years": ("duration_s", 1e9),
    "endless": ("duration_s", float("inf")),
    "samples beyond": ("sample_s", 1e-9),
    "endless delay": (*CELL, "delay_ms", float("inf")),
    "negative delay": (*CELL, "delay_ms", -1),
    "huge queue": (*CELL, "queue_packets", 10**30),
    "negative queue": (*CELL, "queue_packets", -1),
    "queue of no number": (*CELL, "queue_bytes", float("nan")),
    "jitter beyond": (*CELL, "jitter_ms", 1e300),
    "no segment": (*FLOW, "segment_bytes", 0),
    "a window beyond": (*FLOW, "window_bytes", 10**11),
    "thousands of flows": (*FLOW, "count", 100_000),
    "no flow of many": (*FLOW, "count", 0),
    "start beyond": (*FLOW, "start_s", 1e18),
    "timeout beyond": (*FLOW, "rto_min_ms", float("inf")),
    "no bytes": (*FLOW, "size_bytes", 0),
    "steps back in time": (*CELL, "steps", [[0, 8], [2, 3], [1, 4]]),
    "steps of no number": (*CELL, "steps", [[0, float("nan")]]),
    "delays back in time": (*CELL, "delay_steps", [[0, 8], [2, 3], [1, 4]]),
    "RED upside down": (*CELL, "red", {"min_packets": 20, "max_packets": 20}),
    "too many links": ("links", "far{0..99999999}", {"delay_ms": 1}),
    "cross traffic beyond": ("sources", [{**CROSS, "packet_bytes": 1}]),
    "a queue of all memory": ("sources", [CROSS]),
}


def attacked(*path):
    *parents, last, value = path
    tree = copy.deepcopy(SMALL)
    node = tree
    for key in parents:
        node = node[key]
    node[last] = value
    if last == "steps":
        del node["rate_mbps"]
    if last == "sources":
        tree["links"]["cell"]["queue_packets"] = None
        tree["duration_s"] = 100
    return tree


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """One line of a command that must have simulated nothing."""
    monkeypatch.setattr(runner, "simulate", lambda *_: pytest.fail("work was begun"))

    def refused(tree, *more):
        path = tmp_path / "my.yaml"
        path.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree))
        assert main(["evaluate", "cc", "--scenario", str(path), "--cc", "reno", *more]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return refused


@pytest.mark.parametrize("name", ATTACKS)
def test_a_value_beyond_all_bounds_is_refused(name, refused):
    line = refused(attacked(*ATTACKS[name]))
    assert "my.yaml: " in line
    assert len(line) < 400


def test_the_scenario_that_is_attacked_is_a_good_one():
    scenarios.Scenario.parse(SMALL, "small")


def test_the_documents_file_runs(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "netsim.md").read_text()
    path = tmp_path / "my.yaml"
    path.write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    command = ["evaluate", "cc", "--scenario", str(path), "--cc", "cubic", "--seeds", "1"]
    assert main([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert 6 < row["metrics"]["goodput_mbps"]["mean"] < 8


def test_what_would_never_end_is_told_by_its_packets(refused):
    tree = copy.deepcopy(SMALL)
    tree["duration_s"] = 86_400
    tree["links"]["cell"]["rate_mbps"] = 10_000
    tree["flows"][0]["count"] = 100
    line = refused(tree)
    assert "packets, at most 2e+09 can be: shorten duration_s" in line
    # Without a rate or a delay anywhere time stands still.
    tree = copy.deepcopy(SMALL)
    tree["links"] = {"cell": {}, "home": {}}
    assert "give the links a delay" in refused(tree)


def test_flows_that_share_a_link_are_not_counted_twice():
    tree = copy.deepcopy(SMALL)
    tree["links"]["cell"]["rate_mbps"] = 1000
    tree["flows"][0]["count"] = 1000
    tree["duration_s"] = 120
    scenarios.Scenario.parse(tree, "many")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9\n5\n1\n", "5 ms after 9 ms: the times of a mahimahi trace don't descend"),
        ("1e300\n", "beyond"),
        ("0\n0\n", "ends after 0 ms"),
        ("1\n" * 10_000, "more than 100000 Mbps"),
        ("0 5\n1 1e8\n", "more than 100000 Mbps"),
        ("nan\n", "finite"),
        ("", "one or two numbers on every line"),
    ],
)
def test_an_odd_trace_is_refused_before_any_run(text, said, refused, tmp_path):
    trace = tmp_path / "odd.trace"
    trace.write_text(text)
    line = refused(SMALL, "--set", f"links.cell.trace={trace}")
    assert f"{trace}: " in line
    assert said in line


def test_a_trace_without_an_end_is_refused(refused, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero", tmp_path):
        assert f"{path}: no such file" in refused(SMALL, "--set", f"links.cell.trace={path}")
    monkeypatch.setattr(traces, "MOST_BYTES", 1 << 20)
    (tmp_path / "long").write_text("1\n" * (1 << 20))
    with pytest.raises(UserError, match="above 1 MiB: give a shorter trace"):
        traces.read(tmp_path / "long")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--set", "links.cell.loss=["], "not YAML"),
        (["--set", "duration_s.x.y=1"], "unknown key 'x'"),
        (["--set", "links.cell.rate_mbps=.inf"], "links.cell.rate_mbps: "),
        (["--seeds", "1000000000"], "--seeds: give a whole number from 1 to"),
        (["--jobs", "1000000000"], "--jobs: give a whole number from 1 to"),
        (["--set", "flows={}"], "flows: "),
    ],
)
def test_odd_arguments_are_refused(more, said, refused):
    assert said in refused(SMALL, *more)


def test_controls_and_kinds_are_known_before_the_first_run(refused):
    tree = copy.deepcopy(SMALL)
    tree["flows"][0]["cc"] = "rino"
    assert "did you mean 'reno'" in refused(tree)
    tree = copy.deepcopy(SMALL)
    tree["links"]["cell"] = {"generate": {"kind": "wify", "mean_mbps": 8}}
    assert "did you mean 'wifi'" in refused(tree)


def test_a_scenario_without_an_end_is_refused(tmp_path, capsys):
    os.mkfifo(tmp_path / "my.yaml")
    assert main(["evaluate", "cc", "--scenario", str(tmp_path / "my.yaml")]) == 2
    assert "my.yaml: not a file" in capsys.readouterr().err


def test_a_deep_nest_is_refused(refused):
    assert "nested too deeply" in refused("links: " + "[" * 2_000 + "]" * 2_000)
