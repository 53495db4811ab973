"""Driven runs: what is kept, compared and played of them, without a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.lab import plan, topology
from data.lab.topology import Lab
from data.netsim import from_lab
from pipelines.drive import command, page, simulated, summary, tables
from pipelines.drive.kept import kept_of
from pipelines.drive.played import Playing
from pipelines.drive.tasks import Task, behind_ms, policy_of

SEED = 5


def task(scenario: str, control: str = "reno", **changed: Any) -> Task:
    campaign = plan.load(scenario)
    source = plan.sources(campaign)[0]
    drawn = source.draw(SEED).model_copy(update=changed)
    return Task(scenario, source.name, control, 0, SEED, drawn)


@pytest.mark.parametrize("scenario", command.SCENARIOS)
def test_scenarios_are_played_by_the_simulator_too(scenario: str) -> None:
    drawn = task(scenario).drawn
    record = {"id": scenario, "scenario": drawn.model_dump(), "seed": SEED}
    spec = from_lab.scenario_of(record)
    assert spec.flows[0].size_bytes == drawn.size_bytes
    assert len(spec.flows) == 1 + len(drawn.background)


def test_senders_like_the_upload_run_its_control() -> None:
    drawn = task("drive-senders").drawn
    spec = from_lab.scenario_of({"id": "x", "scenario": drawn.model_dump(), "seed": SEED})
    assert [flow.cc for flow in spec.flows[1:]] == [None, None]
    assert all(flow.measure and flow.rate_mbps is None for flow in spec.flows[1:])


def test_others_send_before_the_upload_as_long_as_in_the_lab() -> None:
    drawn = task("drive-senders").drawn
    record = {"id": "x", "scenario": drawn.model_dump(), "seed": SEED}
    spec = simulated.begun(from_lab.scenario_of(record))
    delay_s = {name: link.delay_ms / 1e3 for name, link in spec.links.items()}
    way_s, back_s = delay_s["access"] + delay_s["core"], delay_s["back"]
    assert [flow.start_s for flow in spec.flows[1:]] == [0.0, 0.0]
    assert spec.flows[0].start_s == pytest.approx(way_s + back_s + 0.5)
    assert spec.warmup_s == pytest.approx(spec.flows[0].start_s + 2 * way_s + back_s)
    assert spec.duration_s == pytest.approx(spec.warmup_s + drawn.duration_s)
    alone = from_lab.scenario_of({**record, "scenario": task("drive-dual").drawn.model_dump()})
    assert simulated.begun(alone).flows == alone.flows


def test_queue_policy_stands_at_its_stage_alone(tmp_path: Path) -> None:
    drawn = task("drive-senders").drawn
    text = topology.emulator_config(drawn, Lab(1), tmp_path, SEED, {"core": Path("/x.so")})
    marked = [line.split()[1] for line in text.splitlines() if "policy=/x.so" in line]
    assert marked == ["core"]


def test_records_say_what_decided() -> None:
    assert policy_of("reno", "build/tree", None) is None
    assert policy_of("tree", "build/tree", None) == "build/tree"
    assert policy_of("tree@aqm", "build/tree", "build/aqm") == "build/tree+build/aqm"
    assert policy_of("reno@aqm", "build/tree", "build/aqm") == "build/aqm"
    assert behind_ms("agent+5ms@aqm") == 5
    assert behind_ms("tree@aqm") is None


def test_finite_upload_counts_when_it_has_arrived() -> None:
    one = task("drive-fct", size_bytes=1_000_000)
    record = {"reasons": ["no-window"], "traffic": {"completed_s": 0.5}}
    kept = kept_of(one, record)
    assert kept["valid"]
    assert kept["fct_ms"] == 500
    unfinished = kept_of(one, {"reasons": [], "traffic": {}})
    assert (unfinished["valid"], unfinished["reasons"]) == (False, ["not-completed"])
    late = kept_of(one, record | {"reasons": ["lateness"]})
    assert (late["valid"], late["reasons"]) == (False, ["lateness"])


def test_senders_are_counted_together() -> None:
    one = task("drive-senders", duration_s=10.0)
    flow = {"goodput_mbps": 10.0, "rtt_ms": 300.0, "rtt_p95_ms": 310.0, "retransmits": 0}
    record = {
        "reasons": [],
        "figures": {"subflows": {"1": flow}, "rtt_p95_ms": 310.0, "retransmits": 0},
        "traffic": {"per_second": {"background": [[1_250_000] * 10, [625_000] * 10]}},
    }
    kept = kept_of(one, record)
    assert kept["beside_mbps"] == [10, 5]
    assert kept["goodput_mbps"] == 25
    assert kept["rtt_ms"] == 300
    assert kept["jain"] == round(25**2 / (3 * 225), 4)


def test_tables_have_the_columns_of_their_scenario() -> None:
    base = {"scenario": "s", "site": "1MB", "repeat": 0, "valid": True, "goodput_mbps": 8.0}
    records = [
        base | {"control": "reno", "fct_ms": 900.0, "simulated": {"fct_ms": 800.0}},
        base | {"control": "tree", "fct_ms": 700.0},
    ]
    text = tables.markdown(summary.summarise(records))
    assert "completion, ms" in text
    assert "RTT" not in text
    assert "900 / 800" in text


def test_policy_by_hand_is_not_played() -> None:
    assert Playing(None).player("agent") is None
    assert Playing(None).player("reno@aqm") is None


def test_page_has_the_tables_of_its_runs() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    kept = [json.loads(line) for line in page.RUNS.read_text(encoding="utf-8").splitlines()]
    assert page.taken(kept) == kept
    assert page.MARKS.placed(text, page.written(kept), "x") == text
