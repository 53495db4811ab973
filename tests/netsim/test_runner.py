"""Scenarios, traces, the evaluation's rows and the event tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from data.netsim import events, runner, scenario, traces
from data.netsim.metrics import UNITS, bin_centre_us, simulate
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")

SMALL = """
title: small
duration_s: 5
warmup_s: 1
bottleneck: cell
links:
  cell: {rate_mbps: 8, delay_ms: 10, queue_packets: 30}
  back: {delay_ms: 10}
flows:
  - {name: f, start_spread_s: 0.2, paths: [{forward: [cell], back: [back]}]}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", scenario.names())
def test_shipped_scenarios_build_and_start(name: str) -> None:
    for spec in scenario.load(name).values():
        assert spec.title
        assert spec.source
        network = Network(spec, "cubic", seed=1)
        network.advance(2.0)
        assert network.state.conn["data_rcv"].sum() > 0


def test_rows_have_means_and_intervals(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = runner.main(["--scenario", str(small), "--cc", "reno,cubic", "--seeds", "3", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [row["cc"] for row in rows] == ["reno", "cubic"]
    for row in rows:
        assert row["seeds"] == 3
        assert set(row["metrics"]) <= set(UNITS)
        for value in row["metrics"].values():
            assert value["lo"] <= value["mean"] <= value["hi"]
        assert 6.5 < row["metrics"]["goodput_mbps"]["mean"] < 7.73
        assert row["metrics"]["rtt_ms"]["mean"] > 20.0


def test_one_run_has_no_interval(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = runner.evaluate([str(small)], ["cubic"], seeds=1)
    assert row["metrics"]["goodput_mbps"]["mean"] > 6.5
    assert {(value["lo"], value["hi"]) for value in row["metrics"].values()} == {(None, None)}
    assert runner.main(["--scenario", str(small), "--cc", "cubic", "--seeds", "1"]) == 0
    assert "[" not in capsys.readouterr().out


def test_jobs_change_nothing(small: Path) -> None:
    alone = runner.evaluate([str(small)], ["cubic"], seeds=3)
    assert runner.evaluate([str(small)], ["cubic"], seeds=3, jobs=3) == alone


def test_a_trace_replaces_a_rate(small: Path, tmp_path: Path) -> None:
    trace = tmp_path / "half.trace"
    trace.write_text("".join(f"{3 * i}\n" for i in range(1, 1001)), encoding="ascii")
    rows = runner.evaluate([str(small)], ["cubic"], 1, {"links.cell.trace": str(trace)})
    assert 3.4 < rows[0]["metrics"]["goodput_mbps"]["mean"] < 4.0
    trace.write_text("0 2.0\n1 4.0\n", encoding="ascii")
    rows = runner.evaluate([str(small)], ["cubic"], 1, {"links.cell.trace": str(trace)})
    assert 2.5 < rows[0]["metrics"]["goodput_mbps"]["mean"] < 3.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scenario", "tcco-fig9b"], "did you mean 'tcco-fig9a'?"),
        (["--scenario", "nuwa-fig8", "--cc", "cubik"], "did you mean 'cubic'?"),
        (["--scenario", "nuwa-fig8", "--set", "links.cel.loss=1"], "did you mean 'cell'?"),
        (["--scenario", "nuwa-fig8", "--set", "links.cell.los=1"], "did you mean 'loss'?"),
        (["--scenario", "nuwa-fig8", "--set", "x"], "KEY=VALUE"),
        (["--scenario", "no.yaml"], "no.yaml"),
        (["--scenario", "nuwa-fig8", "--set", "links.cell.trace=no.trace"], "no.trace"),
        ([], "--scenario"),
    ],
)
def test_mistakes_are_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main([*arguments, "--seeds", "1"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("links: [1\n", "not YAML"),
        ("links: 3\n", "links: a mapping of names"),
        ("links: {'a{0..x}': {}}\n", "links.a{0..x}: give a range such as a{0..2}"),
        ("links: {a: {}}\nvariants: [1]\n", "variants: a mapping of names"),
        ("links: {a: {}}\nvariants: {x: 3}\n", "variants.x: give dotted keys"),
        ("links: {a: {}}\n", "flows: none to measure"),
        ("links: {a: {generate: {kind: wifi, mean_mbps: 3, sed: 1}}}\n", "did you mean 'seed'"),
        (SMALL.replace("warmup_s: 1", "warmup_s: 9"), "warmup_s 9 leaves nothing of 5 s"),
        (SMALL.replace("{name: f,", "{name: f, ccs: [reno, cubic],"), "one for each of its paths"),
    ],
)
def test_a_wrong_scenario_file_is_explained(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    assert runner.main(["--scenario", str(path), "--cc", "reno", "--seeds", "1"]) == 2
    error = capsys.readouterr().err
    assert "my.yaml" in error
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_s,mbps\n0,3\n", "no header"),
        ("0 nan\n1 3\n", "finite numbers"),
        ("0 3\n0 4\n", "times must ascend"),
        ("", "one or two numbers"),
    ],
)
def test_a_wrong_trace_names_its_file(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "my.trace"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        traces.read(path)
    assert "my.trace" in str(error.value)


def test_progress_sees_every_run(small: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    def progress(runs: Any, what: str, total: int) -> Any:
        kept = list(runs)
        seen.append((what, total, len(kept)))
        return kept

    rows = runner.evaluate([str(small)], ["reno", "cubic"], 2, progress=progress)
    assert seen == [("simulate", 4, 4)]
    assert [row["cc"] for row in rows] == ["reno", "cubic"]
    assert rows == runner.evaluate([str(small)], ["reno", "cubic"], 2)


def test_catalogue_lists_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--list"]) == 0
    text = capsys.readouterr().out
    assert "tcco-fig9a" in text
    assert "cubic" in text


def test_a_scenario_with_wrong_links_is_refused() -> None:
    tree = {"links": {"a": {}}, "flows": [{"name": "f", "paths": [{"forward": ["b"], "back": []}]}]}
    with pytest.raises(UserError):
        Scenario.parse(tree, "test")


@pytest.mark.parametrize("kind", ["cellular", "wifi", "satellite"])
def test_generated_traces_are_seeded_and_have_the_mean(kind: str) -> None:
    _, times, rates, period = traces.generate(kind, 20.0, 3)
    assert rates.mean() == pytest.approx(20e6, rel=0.02)
    assert rates.std() > 0.1 * rates.mean()
    assert period > times[-1]
    assert np.array_equal(rates, traces.generate(kind, 20.0, 3)[2])
    assert not np.array_equal(rates, traces.generate(kind, 20.0, 4)[2])


def test_rtt_percentile_is_within_its_bin(small: Path) -> None:
    spec = scenario.load(str(small))[""]
    network = Network(spec, "reno", seed=1, log=True)
    network.advance(5.0)
    rows = network.log_rows()
    rtts = rows["value"][rows["variable"] == 0]
    counts = network.state.hist[0]
    place = int(np.searchsorted(np.cumsum(counts), 0.95 * counts.sum()))
    assert bin_centre_us(place) == pytest.approx(float(np.percentile(rtts, 95)), rel=0.05)


def test_completion_times_and_fairness_are_reported(small: Path) -> None:
    settings = {"flows.0.size_bytes": 200_000, "flows.0.count": 2, "duration_s": 10, "warmup_s": 0}
    result = simulate(scenario.load(str(small), settings)[""], "cubic", 0)
    assert 2 * 200.0 < result["fct_ms"] * 2 < 2000.0
    assert result["jain"] == pytest.approx(1.0)


def test_a_log_feeds_the_features(tmp_path: Path) -> None:
    from pipelines.cli import main

    tree = {
        "links": {
            "wifi": {"delay_ms": 5.0}, "lte": {"delay_ms": 20.0},
            "server": {"rate_mbps": 8.0, "delay_ms": 5.0, "queue_packets": 40},
            "back": {"delay_ms": 10.0},
        },
        "flows": [{"name": "dc", "cc": "reno", "paths": [
            {"forward": ["wifi", "server"], "back": ["back"]},
            {"forward": ["lte", "server"], "back": ["back"]}]}],
    }  # fmt: skip
    network = Network(Scenario.parse(tree, "test"), seed=1, log=True)
    network.advance(40.0)
    summary = events.write(
        [events.tables(network, "sim", {"label": "SB", "case": "x"})], tmp_path / "events"
    )
    assert summary["connections"] == 1
    assert summary["subflows"] == 2
    out = tmp_path / "features.parquet"
    assert main(["features", "sbd", "--events", str(tmp_path / "events"), "--out", str(out)]) == 0
    table = pl.read_parquet(out)
    assert len(table) > 0
    assert set(table["label"]) == {"SB"}
    assert set(table["case"]) == {"x"}
