"""The page of comparisons, on one tiny scenario; and what the scenario files say of the papers."""

import json
from dataclasses import replace

import pytest
import yaml

from data.errors import UserError
from data.netsim import scenario
from data.netsim.cc import CONTROLS
from data.netsim.metrics import UNITS
from data.netsim.paper import split
from models.closedloop import Player
from pipelines import controllers
from pipelines.studies import acting
from pipelines.studies.papers import command, rewards, timelines
from tests.models import random_policies

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


LEARNED = """\
  learned: {nuwa-rl: {called: magic}}
  claims:
    - {says: the agent is slower, metric: goodput_mbps, terms: [nuwa-rl], below: 9.9}
    - {says: it is above 100, metric: goodput_mbps, terms: [nuwa-rl], above: 100}
"""


def test_a_given_agent_fills_its_rows_and_its_statements_are_judged(
    small, tmp_path, capsys, monkeypatch
):
    small.write_text(SMALL.replace("  claims:\n", LEARNED), encoding="utf-8")
    page = tmp_path / "papers.md"
    arguments = ["--scenario", str(small), "--seeds", "2", "--work", str(tmp_path / "work")]
    arguments += ["--out", str(page), "--json"]
    monkeypatch.setattr("pipelines.studies.acting._kept", lambda name: False)
    assert command.main(arguments) == 0
    without = verdicts(capsys.readouterr().out)
    assert "No trained agent has been released" in page.read_text(encoding="utf-8")
    assert len(without) == 7
    made = Player(random_policies.policy("nuwa"))
    monkeypatch.setattr(controllers, "player", lambda place: made)
    given = [*arguments, "--agent", "nuwa-rl=reports/rl/nuwa/seed-7"]
    assert command.main(given) == 0
    found = json.loads(capsys.readouterr().out)[str(small)]
    judged = {s["says"]: s["verdict"] for s in found["statements"]}
    assert judged == {**without, "the agent is slower": "holds", "it is above 100": "does not hold"}
    # Neither ``*`` nor a reading with controls of its own has the agent.
    assert [(r["variant"], r["paper"]) for r in found["rows"] if r["cc"] == "nuwa-rl"] == [
        ("", {"goodput_mbps": 9.9})
    ]
    text = page.read_text(encoding="utf-8")
    assert "- `nuwa-rl`: `cczoo train nuwa " in text
    assert "/ 9.9 |" in next(line for line in text.splitlines() if line.startswith("| `nuwa-rl`"))
    assert "| magic |" not in text
    # Its runs are kept, too.
    monkeypatch.setattr(made, "play", None)
    assert command.main(given) == 0


def test_fig_12_compares_the_rewards_of_the_agents_given(tmp_path, monkeypatch):
    monkeypatch.setattr(rewards, "STEPS", 3)
    one, other = (Player(random_policies.policy("nuwa", seed)) for seed in (3, 4))
    sections, results = {}, {}
    rewards.add(sections, results, {"tcco": one}, 2, tmp_path)
    assert not sections
    rewards.add(sections, results, {"nuwa-rl": one, "nuwa-ppo": other}, 2, tmp_path)
    found = results[rewards.NAME]
    assert len(found) == 4 * 3
    assert found["nuwa_wired", "nuwa-rl"] != found["nuwa_4g", "nuwa-rl"]
    judged = {v.claim.says for v in command_judge(sections[rewards.NAME], found)}
    assert judged == {"PPO-LSTM is above what a fixed k of 7 gets"}
    # What is kept is played anew as soon as the code of this study is another.
    (tmp_path / "rewards.py").write_text("# Another one.")
    monkeypatch.setattr(rewards, "FILE", tmp_path / "rewards.py")
    lines = (tmp_path / "runs.jsonl").read_text().count("\n")
    rewards.add(sections, results, {"nuwa-rl": one}, 2, tmp_path)
    assert (tmp_path / "runs.jsonl").read_text().count("\n") == lines + 4 * 2


def command_judge(variants, found):
    from pipelines.studies.papers.claims import judge

    return judge(variants, found)


def test_a_timeline_adds_up_to_what_was_delivered():
    spec = random_policies.scenario()
    for who in ("cubic", Player(random_policies.policy("macc"))):
        mbps, rtt_ms = timelines.series(spec, who, 0, 0.5)
        assert mbps.shape == (4,)
        assert mbps[1:].min() > 1.0
        assert 20.0 < rtt_ms[-1] < 120.0


def test_an_untrained_network_is_another_one_for_the_same_parts():
    policy = random_policies.policy("macc")
    found = acting.with_untrained({"macc": Player(policy)})
    fresh = found[acting.UNTRAINED].policy
    assert fresh.weights.keys() == policy.weights.keys()
    assert any((fresh.weights[key] != policy.weights[key]).any() for key in policy.weights)
    assert acting.with_untrained({"tcco": Player(policy)}).keys() == {"tcco"}
    said = acting.line(acting.UNTRAINED, found[acting.UNTRAINED])
    assert "weights drawn at random by a fixed seed" in said
    assert "scaled as the training left them" in said


def test_the_second_place_is_above_every_rule_based_pair():
    variants = {label: scenario.load("macc-fig4")[label] for label in ("droptail", "red", "codel")}
    paper = variants["red"].paper
    about = [one for one in paper.claims if "macc-rl-tcp-red @ red" in one.named()]
    only = {"paper": paper.model_copy(update={"claims": about})}
    variants = {label: spec.model_copy(update=only) for label, spec in variants.items()}
    runs = {(label, "reno"): [{"goodput_mbps": 20.0 + i} for i in (0, 1)] for label in variants}
    runs["droptail", "macc"] = [{"goodput_mbps": 28.0 + i} for i in (0, 1)]
    for mbps, verdict in ((10.0, "does not hold"), (25.0, "holds")):
        runs["red", "macc-rl-tcp-red"] = [{"goodput_mbps": mbps + i} for i in (0, 1)]
        judged = {v.claim.says: v.verdict for v in command_judge(variants, runs)}
        assert judged["RED + TCP-RL comes second"] == "holds"
        assert judged["above every rule-based pair"] == verdict


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("macc", "give NAME=PLACE"),
        ("mac=there", "did you mean 'macc'"),
        ("tcco=there", "an agent of macc: name one of tcco"),
    ],
)
def test_an_agent_that_is_none_is_refused(text, message, monkeypatch):
    monkeypatch.setattr(controllers, "player", lambda place: Player(random_policies.policy("macc")))
    with pytest.raises(UserError, match=message):
        acting.given([text])


@pytest.mark.parametrize(
    ("name", "agent", "kinds", "message"),
    [
        ("nuwa-dqn", "nuwa", (0,), "an agent of nuwa: name one of nuwa-dqn"),
        ("nuwa-rl", "nuwa-ppo", (0,), "an agent of nuwa-ppo: name one of nuwa"),
        ("macc", "macc-qmix", (0, 1), "an agent of macc-qmix: name one of macc"),
        ("macc", "macc", (0,), "macc-part has senders or routers alone"),
        ("macc", "macc", (0, 1), ""),
        ("nuwa-rl", "nuwa", (0,), ""),
    ],
)
def test_an_agent_is_the_one_that_it_is_named(name, agent, kinds, message, monkeypatch):
    policy = random_policies.policy(agent.partition("-")[0])
    policy = replace(policy, name="macc-part", agent=agent, kinds=kinds)
    monkeypatch.setattr(controllers, "player", lambda place: Player(policy))
    if not message:
        assert acting.given([f"{name}=there"]).keys() == {name}
        return
    with pytest.raises(UserError, match=message):
        acting.given([f"{name}=there"])


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
    assert {*paper.learned} <= {*acting.names(), acting.UNTRAINED}
    assert {label for one in paper.learned.values() for label in one.at} <= labels
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
            assert cc == "*" or cc in CONTROLS or cc in paper.learned
