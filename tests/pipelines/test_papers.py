"""The page of comparisons, on one tiny scenario; and what the scenario files say of the papers."""

import json

import pytest
import yaml

from data.errors import UserError
from data.netsim import scenario
from data.netsim.cc import CONTROLS
from data.netsim.metrics import UNITS
from data.netsim.paper import split
from pipelines.studies.papers import command

pytestmark = pytest.mark.xdist_group("netsim")

SMALL = """
title: A flow on a link
source: nowhere
duration_s: 8
warmup_s: 2
bottleneck: cell
links:
  cell: {rate_mbps: 8, delay_ms: 10, queue_packets: 30}
  back: {delay_ms: 10}
flows:
  - {name: f, start_spread_s: 0.2, paths: [{forward: [cell], back: [back]}]}
paper:
  controllers: [reno, vegas]
  metrics: [goodput_mbps, flows.f]
  values:
    goodput_mbps: {reno: 7.7}
  others:
    goodput_mbps: {magic: 9.9}
  claims:
    - {says: reno waits longer, metric: queue_delay_ms, higher: [reno], than: [vegas]}
    - {says: vegas waits longer, metric: queue_delay_ms, higher: [vegas], than: [reno]}
    - {says: a longer queue is used, metric: queue_delay_ms, higher: [reno @ long], than: [reno]}
    - {says: equal goodput, metric: goodput_mbps, ratio: [reno, vegas], paper: 1.0}
    - {says: twice the goodput, metric: goodput_mbps, ratio: [reno, vegas], paper: 2.0}
    - {says: within the link's rate, metric: goodput_mbps, terms: ["*"], below: 8}
    - {says: above it, metric: goodput_mbps, terms: [reno], above: 8}
  readings:
    long: {why: a queue twice as long, set: {links.cell.queue_packets: 60}, controllers: [reno]}
  notes: A note.
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def verdicts(out):
    return {
        s["says"]: s["verdict"] for s in json.loads(out)[next(iter(json.loads(out)))]["statements"]
    }


def test_page_and_verdicts(small, tmp_path, capsys):
    page = tmp_path / "papers.md"
    arguments = ["--scenario", str(small), "--seeds", "2", "--work", str(tmp_path / "work")]
    assert command.main([*arguments, "--out", str(page), "--json"]) == 0
    assert verdicts(capsys.readouterr().out) == {
        "reno waits longer": "holds", "vegas waits longer": "does not hold",
        "a longer queue is used": "holds", "equal goodput": "holds",
        "twice the goodput": "does not hold", "within the link's rate": "holds",
        "above it": "does not hold",
    }  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "/ 7.7" in text
    assert "| magic | / 9.9 |" in text
    assert "vegas waits longer: **does not hold**" in text
    assert text.rstrip().endswith("A note.")


def test_finished_runs_are_kept(small, tmp_path, capsys, monkeypatch):
    work = tmp_path / "work"
    arguments = ["--scenario", str(small), "--seeds", "2", "--work", str(work), "--json"]
    assert command.main(arguments) == 0
    first = capsys.readouterr().out
    kept = work / "runs.jsonl"
    whole = kept.read_text(encoding="utf-8")
    # A command killed while writing: the last run is lost, the others are not.
    kept.write_text(whole[:-20], encoding="utf-8")
    simulated = []
    from data.netsim import metrics

    real = metrics.simulate
    monkeypatch.setattr(metrics, "simulate", lambda *task: simulated.append(task) or real(*task))
    assert command.main(arguments) == 0
    assert capsys.readouterr().out == first
    assert len(simulated) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "--scenario", "tcco-fig9b"], "tcco-fig9a"),
        (["--json", "--scenario", "smartsbd-table6"], "controllers"),
        (["--json", "--seeds", "1"], "at least 2"),
        ([], "--out"),
    ],
)
def test_mistakes_are_one_clear_line(arguments, message, capsys):
    assert command.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_claim_has_one_form(tmp_path):
    tree = yaml.safe_load(SMALL)
    tree["paper"]["claims"][0]["terms"] = ["reno"]
    tree["paper"]["claims"][0]["above"] = 1
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(UserError, match="give higher and than"):
        scenario.load(str(path))


@pytest.mark.parametrize("name", scenario.names())
def test_papers_speak_of_metrics_controls_and_variants_there_are(name):
    variants = scenario.load(name)
    spec = next(iter(variants.values()))
    paper = spec.paper
    labels = {"", *(command.load([name])[name] if paper.controllers else variants)}
    flows = {f.name if f.count == 1 else f"{f.name}{i}" for f in spec.flows for i in range(f.count)}
    known = {*UNITS, *(f"flows.{flow}" for flow in flows)}
    assert {*paper.metrics} <= known
    assert {*paper.controllers} <= {*CONTROLS}
    for metric, label, cc, value in paper.numbers():
        assert metric in known
        assert label in labels
        assert cc in paper.controllers
        assert value > 0
    for metric, label, _, _ in paper.numbers(other=True):
        assert metric in known
        assert label in labels
    for reading in paper.readings.values():
        assert {*reading.controllers} <= {*paper.controllers}
    for claim in paper.claims:
        assert claim.metric in known
        for cc, label in map(split, claim.named()):
            assert label in labels
            assert cc == "*" or cc in CONTROLS
