"""Bars for agents: how they are judged, what is kept, and scenarios out of the training's range."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data.errors import UserError
from data.netsim.cc import CONTROLS, COUPLED
from data.netsim.metrics import simulate
from data.netsim.scenario import load
from models.closedloop import Player
from models.envs.samplers import mixed_paths, wireless
from pipelines import controllers
from pipelines.studies import acting
from pipelines.studies.bars import bench as bench_file
from pipelines.studies.bars import beyond, command, drawn, judge, macc, nuwa, page, scripts, tcco
from pipelines.studies.bars.bench import Bench
from pipelines.studies.bars.kept import Measured, read
from pipelines.studies.bars.scripts import Tracking
from pipelines.studies.papers.runs import Kept
from tests.models import random_policies

pytestmark = pytest.mark.xdist_group("netsim")


@pytest.mark.parametrize(
    ("values", "limit", "at_least", "sure", "verdict"),
    [
        ([1.0, 3.0], 2.0, True, False, "met in the mean"),
        ([1.0, 3.0], 2.0, False, False, "met in the mean"),
        ([1.9, 2.1], 0.5, True, False, "met"),
        ([1.9, 2.1], 3.5, False, False, "met"),
        ([1.0, 3.0], 2.5, True, False, "missed by 0.5 ms"),
        ([1.0, 3.0], 1.5, False, False, "missed by 0.5 ms"),
        ([1.0, 3.0], 1.5, True, True, "missed by 12.2 ms"),
        ([1.9, 2.1], 0.0, True, True, "met"),
        ([0.0, 0.0], 0.0, True, True, "missed by 0 ms"),
    ],
)
def test_a_bar_is_met_by_the_mean_or_by_the_whole_interval(values, limit, at_least, sure, verdict):
    bar = judge.Bar("key", "what", "ms", limit, lambda bench: values, at_least, sure)
    found = judge.cleared(bar, np.array(values))
    assert found.verdict == verdict
    assert found.value == pytest.approx(2.0 if sum(values) else 0.0)


class Rows:
    """A bench of known runs by who plays, and of known returns.

    Runs are one a seed, or a function of the scenario and the seed.
    """

    def __init__(self, kind="tcco", paid=None, **rows):
        self.rows, self.paid, self.seeds, self.identity = rows, paid, 2, "own"
        self.player = Player(random_policies.policy(kind))

    def runs(self, episodes, who="trained"):
        rows = self.rows[who if isinstance(who, str) else "script"]
        return [rows(*one) if callable(rows) else rows[one[1]] for one in episodes]

    def rewards(self, facts, make, act):
        batch = make()
        assert callable(act(batch))
        batch.close()
        return np.array(self.paid(facts))

    named, of, values, best = Bench.named, Bench.of, Bench.values, Bench.best


DEAD = [{"goodput_mbps": 0.0, "queue_mad": 0.0, "cwnd_mad": 0.0}] * 2


def test_an_agent_that_delivers_nothing_meets_no_bar():
    for bars in (macc.bars, tcco.bars):
        for bar in bars(random_policies.policy("tcco")):
            if bar.key in ("mixed", "tcco-fig10", "tcco-fig11-fct"):
                continue
            others = dict.fromkeys(CONTROLS, [{"goodput_mbps": 9.0}] * 2)
            found = judge.cleared(bar, bar.measure(Rows(trained=DEAD, **others)))
            assert found.verdict.startswith("missed")
            if not bar.at_least:
                assert found.verdict == "missed: no value in 2 of 2 seeds"
                assert found.value is None
    row = judge.cleared(judge.Bar("k", "w", "ms", 2.0, None, False), np.array([1.0, np.nan]))
    assert row.verdict == "missed: no value in 1 of 2 seeds"
    assert json.loads(row.model_dump_json())["low"] is None
    agent = Measured(name="tcco", agent="tcco", steps=1, seed=1, training="t", place="p",
                     weights="w", seeds=2, command="c", bars=(row,), conditions=(),
                     fairness=())  # fmt: skip
    assert "| w | `k` | – | ≤ 2 | missed: no value in 1 of 2 seeds |" in page.page([agent])
    there = [(random_policies.scenario(), seed) for seed in (0, 1)]
    bench = Rows(trained=DEAD, cubic=[{"goodput_mbps": 9.0, "rtt_ms": 4.0}] * 2)
    found = beyond.outside(bench, "there", there)
    assert (found.goodput.mean, found.rtt.mean, found.power.mean) == (0.0, None, None)


def test_the_fastest_control_is_one_that_finished():
    never = [{"goodput_mbps": 1.0}] * 2
    others = dict.fromkeys(CONTROLS, never)
    label = next(iter(load("tcco-fig10")))
    (bar,) = [bar for bar in tcco.bars(None) if label in bar.says and bar.key == "tcco-fig10"]
    ends = load("tcco-fig10")[label].duration_s * 1e3
    slow = [{"goodput_mbps": 1.0, "fct_ms": ends / 2}] * 2
    assert bar.measure(Rows(trained=never, **{**others, "lia": slow})).tolist() == [2.0, 2.0]
    assert bar.measure(Rows(trained=never, **others)).tolist() == [1.0, 1.0]
    best = Rows(reno=never, lia=[{"jain": 0.5}] * 2).best
    there = [(None, 0), (None, 1)]
    assert best(there, "jain", ["reno", "lia"], most=False).tolist() == [0.5, 0.5]
    assert np.isnan(best(there, "jain", ["reno"])).all()


def test_kept_returns_are_played_anew_when_the_code_of_a_bar_changes(tmp_path, monkeypatch):
    for path in bench_file.FOLDER.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(bench_file, "FOLDER", tmp_path)
    monkeypatch.setattr(scripts, "FILE", tmp_path / "scripts.py")
    monkeypatch.setattr(bench_file, "returns", lambda batch, act: np.array([batch]))
    made = iter((1.0, 2.0, 3.0))

    def played():
        return bench.rewards(["facts"], lambda: next(made), lambda batch: None).item()

    with Kept(tmp_path / "work") as kept:
        bench = Bench(Player(random_policies.policy("macc")), 2, kept)
        before = Tracking(1.25).identity
        assert [played(), played()] == [1.0, 1.0]
        (tmp_path / "page.py").write_text("# Other words.")
        assert played() == 1.0
        (tmp_path / "macc.py").write_text("# Another measure.")
        assert played() == 2.0
        assert Tracking(1.25).identity == before
        (tmp_path / "scripts.py").write_text("# Another script.")
        assert played() == 3.0
    assert Tracking(1.25).identity != before


def measured(bars, bench):
    return {(bar.key, bar.says): bar.measure(bench).round(9).tolist() for bar in bars}


def test_what_tcco_is_measured_by(monkeypatch):
    monkeypatch.setattr(tcco, "most_mbps", lambda spec, seed: 100.0)

    def own(spec, seed):
        lost = spec.links["one"].loss if "tcco.txt" in spec.source and "one" in spec.links else 0.0
        return {"goodput_mbps": (8.0 + 4 * seed) * (1 - 20 * lost), "rtt_ms": 5.0 + 2 * seed,
                "jain": 0.8 + 0.1 * seed, "fct_ms": 2e3 + 1e3 * seed,
                "rtt_ratio": 1.25 + 0.75 * seed}  # fmt: skip

    slow = {"goodput_mbps": 5.0, "fct_ms": 4e3, "rtt_ratio": 2.0}
    others = dict.fromkeys(CONTROLS, [slow] * 2)
    others["lia"] = [{"goodput_mbps": 10.0, "fct_ms": 1e3, "rtt_ratio": 2.0}] * 2
    script = [{"goodput_mbps": 10.0, "rtt_ratio": 1.0}] * 2
    bars = tcco.bars(random_policies.policy("tcco"))
    found = measured(bars, Rows(trained=own, script=script, **others))
    assert len(found) == len(bars)
    for (key, says), values in found.items():
        percent = float(says.partition(" %")[0]) if key == "tcco-fig9-loss" else 0.0
        kept = 1 - 20 * percent / 100
        expected = {
            "tcco-fig9a": [5.0, 7.0] if says.endswith("RTT") else [0.8, 1.2],
            "tcco-fig9-loss": [kept] * 2 if "its own" in says else [1.6 * kept, 2.4 * kept],
            "tcco-fig10": [2.0, 3.0],
            "tcco-fig11": [0.8, 1.2],
            "tcco-fig11-fct": [2.0, 3.0],
            "tcco-table2": [0.8, 0.9],
            "mixed": [0.08, 0.12],
        }[key]
        if "power" in says:
            # Shares of 0.08 and 0.12 at 1.25 and 2 times the RTT.
            less = 0.1 if "script" in says else 0.05 if "less lia's" in says else 0.025
            expected = [0.064 - less, 0.06 - less]
        assert values == pytest.approx(expected), says


def test_what_nuwa_is_measured_by():
    def own(spec, seed):
        # T_d is 50 ms on Table I's link, 20 ms on the one with a short queue.
        target = spec.flows[0].target_delay_ms
        return {"goodput_mbps": 1.0, "transferred_mb": target / 5, "queue_delay_ms": target + seed}

    def paid(facts):
        _, ms, loss, steps, who, *_ = facts
        assert steps == nuwa.STEPS
        if who == "own":
            return [ms, ms + (10.0 if loss else 0.0)]
        # By rule 1 without loss and 2 with it; of the fixed ones k = 4 is the best.
        return [2.0 if loss else 1.0] * 2 if who == "thresholds 0.2" else [-abs(who - 4.0)] * 2

    known = {"cubic": (10.0, 40.0), "bbr": (5.0, 25.0)}
    others = {
        cc: [{"goodput_mbps": 1.0, "transferred_mb": mb, "queue_delay_ms": ms}] * 2
        for cc, (mb, ms) in known.items()
    }
    bars = nuwa.bars(random_policies.policy("nuwa"))
    found = measured(bars, Rows("nuwa", paid, trained=own, **others))
    assert len(found) == len(bars) == 15
    for ms in nuwa.TARGETS_MS:
        shown = f"T_d {ms:g} ms: return less the"
        rule = found["rule", f"{shown} two-threshold rule's"]
        assert rule == [ms - 1.5, ms + 5.0 - 1.5]
        assert found["fixed-k", f"{shown} best fixed k's, without loss"] == [ms, ms]
        assert found["fixed-k", f"{shown} best fixed k's, with loss"] == [ms, ms + 10.0]
    assert list(found.values())[-6:] == [
        [1.0, 1.0], [50 / 40, 51 / 40], [2.0, 2.0], [50 / 25, 51 / 25], [0.4, 0.4],
        [20 / 40, 21 / 40],
    ]  # fmt: skip


def test_what_macc_is_measured_by():
    def own(spec, seed):
        since = spec.warmup_s
        return {"goodput_mbps": 28.0 + seed, "rtt_ms": 280.0 + seed,
                "queue_mad": since + seed, "cwnd_mad": 2 * since + seed}  # fmt: skip

    returned = {macc.OWN: [5.0, 6.0], macc.NEVER: [1.0, 1.0], macc.CODEL: [4.0, 3.0]}
    bench = Rows("macc", lambda facts: returned[facts[1]], trained=own)
    found = measured(macc.bars(bench.player.policy), bench)
    assert list(found.values()) == [
        [28.0, 29.0], [280.0, 281.0], [28.0, 29.0], [280.0, 281.0],
        [20.0, 21.0], [40.0, 41.0], [4.0, 5.0], [1.0, 3.0],
    ]  # fmt: skip


@pytest.fixture
def team(monkeypatch):
    policy = random_policies.policy("macc")
    made = Player(replace(policy, settings={**policy.settings, "steps": 20_000, "seed": 7}))
    monkeypatch.setattr(controllers, "player", lambda place: made)
    return made


def test_one_agent_alone_makes_the_page_and_is_measured_once(team, tmp_path, capsys, monkeypatch):
    out = tmp_path / "bars.md"
    given = ["--agent", "macc=somewhere", "--seeds", "2", "--work", str(tmp_path / "work")]
    assert command.main([*given, "--out", str(out), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert {bar["key"] for bar in found["bars"]} == {"macc-fig4", "routers"}
    # Untrained, it delivers nothing after a while: no calm queue then.
    lacking = [bar for bar in found["bars"] if bar["value"] is None]
    assert {bar["bar"].rpartition(" ")[2] for bar in lacking} == {"MAD", "RTT"}
    assert {bar["verdict"] for bar in lacking} == {"missed: no value in 2 of 2 seeds"}
    known = [bar for bar in found["bars"] if bar not in lacking]
    assert all(bar["low"] <= bar["value"] <= bar["high"] for bar in known)
    assert found["conditions"][0]["condition"] == "as in training"
    assert not any(row["refused"] for row in found["conditions"])
    assert len(found["fairness"]) == 5
    assert all(0.0 <= (row["jain"]["mean"] or 0.0) <= 1.0 for row in found["fairness"])
    assert found["fairness"][-1]["share"]["mean"] == 0.0
    text = out.read_text(encoding="utf-8")
    assert "## macc" in text
    assert "seed 7" in text
    assert "--agent macc=reports/rl/macc/seed-7 --seeds 2" in text
    assert "somewhere" not in text
    # Finished runs are kept, and the figures of other agents stay in the page.
    monkeypatch.setattr(team, "play", None)
    folder = out.with_suffix("")
    other = json.loads((folder / "macc.json").read_text())
    (folder / "tcco.json").write_text(json.dumps({**other, "name": "tcco"}))
    assert command.main([*given, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [found]
    assert "## tcco" in out.read_text(encoding="utf-8")
    # A part of it, in words.
    assert command.main([*given, "--only", "macc-fig4"]) == 0
    assert "three senders, 30 Mbps, 280 ms: goodput" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agent", "macc=x", "--seeds", "1"], "at least 2"),
        (["--agent", "macc=x", "--only", "nothing"], "no bar has that in its key"),
        (["--agent", "macc=x", "--only", "fig4", "--out", "x.md"], "leave --only out"),
        (["--agent", "macc-qmix=x"], "no bars for it"),
        ([], "train one"),
    ],
)
def test_mistakes_are_one_clear_line(arguments, message, team, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(acting, "_kept", lambda name: False)
    assert command.main([*arguments, "--work", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_what_an_agent_refuses_is_said(tmp_path, monkeypatch):
    with Kept(tmp_path) as kept:
        bench = Bench(Player(random_policies.policy("tcco")), 2, kept)
        there = beyond.conditions(bench)
        found = beyond.outside(bench, "three subflows", there["three subflows"])
    assert found.goodput is None
    assert "3 subflows, it was trained with 2 at most" in found.refused

    def refuse(spec):
        raise UserError("one flow at most")

    monkeypatch.setattr(bench.player, "check", refuse)
    rows = beyond.fair(bench)
    assert [(row.jain, row.refused) for row in rows] == [(None, "one flow at most")] * 5
    one = Measured(name="tcco", agent="tcco", steps=1, seed=1, training="t", place="p",
                   weights="w", seeds=2, command="c", bars=(), conditions=(),
                   fairness=tuple(rows))  # fmt: skip
    assert "| beside bbr | refused: one flow at most |  |  |" in page.page([one])
    assert {len(tcco.bars(bench.player.policy))} == {2 + 6 + 4 + 5 + 4 + 2 + 2 + len(COUPLED)}


def test_conditions_are_twice_those_of_training():
    rng = np.random.default_rng
    before, after = mixed_paths(rng(1)), drawn.changed(mixed_paths, rtt=2.0, loss=0.01)(rng(1))
    for name, link in before.links.items():
        twice = after.links[name]
        assert twice.delay_ms == 2 * link.delay_ms
        assert [ms for _, ms in twice.delay_steps or ()] == [
            2 * ms for _, ms in link.delay_steps or ()
        ]
        assert twice.steps == link.steps
        assert twice.loss == (0.01 if link.queue_packets else 0.0)
    one, other = wireless(rng(2)), drawn.changed(wireless, rate=2.0)(rng(2))
    generated = one.links["cell"].generate, other.links["cell"].generate
    assert generated[1].mean_mbps == 2 * generated[0].mean_mbps
    assert other.links["cell"].queue_packets == 2 * one.links["cell"].queue_packets
    assert other.links["cell"].delay_ms == one.links["cell"].delay_ms
    assert len(drawn.three_paths(rng(1)).flows[0].paths) == 3
    spec = drawn.class_of(15.0, 0.0005)(rng(2))
    assert (spec.flows[0].target_delay_ms, spec.links["cell"].loss) == (15.0, 0.0005)
    assert spec.links["cell"].generate == one.links["cell"].generate
    assert [seed for _, seed in drawn.episodes(wireless, 2)] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("kind", "sampler"), [("tcco", mixed_paths), ("nuwa", wireless)])
def test_out_of_range_all_that_is_drawn_lies_out_of_range(kind, sampler):
    delay, rate, loss = beyond.MOST[kind]
    for seed in range(200):
        spec = sampler(np.random.default_rng(seed))
        assert max(drawn.delays(spec)) <= delay
        assert max(drawn.rates(spec)) <= rate
        assert max(link.loss for link in spec.links.values()) <= loss
    bench = Bench(Player(random_policies.policy(kind)), 2, None)
    there = list(beyond.conditions(bench).items())
    assert [label for label, _ in there[1:3]] == [
        f"RTT of {2 * delay:g} to {4 * delay:g} ms", f"rate of {rate:g} to {2 * rate:g} Mbps"
    ]  # fmt: skip
    for (_, found), what, most in zip(there[1:3], (drawn.delays, drawn.rates), (delay, rate),
                                      strict=True):  # fmt: skip
        values = [value for spec, _ in found for value in what(spec)]
        assert len(values) >= 6
        assert most < min(values) <= max(values) <= 2 * most


def test_the_page_is_written_from_the_figures_beside_it():
    kept = Path(__file__).parents[2] / "docs" / "bars"
    written = page.page(read(kept, acting.HEADS))
    assert kept.with_suffix(".md").read_text(encoding="utf-8") == written
    assert "one and the same network" in written


def test_the_tracking_script_fills_both_paths():
    spec = random_policies.scenario(2).model_copy(update={"duration_s": 6.0, "warmup_s": 2.0})
    (row,) = Tracking(1.25).play([(spec, 1)])
    assert row["goodput_mbps"] > 0.85 * (8.0 + 9.0)
    assert row["rtt_ms"] < simulate(spec, "cubic", 1)["rtt_ms"]


def test_a_page_without_figures_says_so():
    assert page.page([]).endswith(f"{page.NONE}\n")
