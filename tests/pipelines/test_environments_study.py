"""What there is to win: the command, its page, and that scripted policies do what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from data.errors import UserError
from features import nuwa
from models.envs.macc import MaccBatch
from models.envs.macc_scenarios import greedy_neighbours
from models.envs.nuwa import NuwaBatch
from models.envs.samplers import alternating, path_class, wireless
from models.envs.scripted import (
    at_random,
    macc_policy,
    nuwa_hold,
    nuwa_thresholds,
    tcco_constant,
    with_k,
)
from models.envs.tcco import TccoBatch
from models.rl import agents, training
from pipelines.studies.environments import classes, command, judge, page

pytestmark = pytest.mark.xdist_group("netsim")


def test_the_command_prints_every_policy_beside_the_best_constant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["--only", "dumbbell", "--seeds", "2", "--steps", "5", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = printed["environments"]["MA-CC, dumbbell"]
    assert len(rows) == len(judge.PROBLEMS["MA-CC, dumbbell"])
    (best,) = [row for row in rows if row["best_constant"]]
    assert best["over_best_constant"] == 0
    assert best["return"] == max(row["return"] for row in rows if row["kind"] == "constant")
    assert {row["kind"] for row in rows} == {"random", "hold", "constant", "script"}
    assert all(row["mbps"] > 1 and row["rtt_ms"] > 250 for row in rows)


def test_constants_of_a_class_stand_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window that fills the path earns most; half of it, and three times as much, less."""
    monkeypatch.setattr(classes, "SHARES", (0.5, 1.1, 3.0, 4.0))
    monkeypatch.setattr(classes, "CLASSES", ((30.0, 20.0),))
    (row,) = classes.figures(300)
    assert row["share"] == 1.1
    assert row["window"] == 55
    assert row["of_best_mbps"] > 0.95
    assert row["return"] > 1.5
    assert max(row["three_times"], row["four_times"], row["always_raised"]) < 0.5 * row["return"]
    assert "| 30 | 20 | 55 (1.1 products) |" in classes.table([row])


def test_a_comparison_is_played_in_the_environment_that_it_has_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Routers alone: throughput and RTT are those of the flows that they serve."""
    changes = {"steps": 64, "num_envs": 4, "validate_every": 0}
    training.train("macc-rl-aqm", agents.settings("macc-rl-aqm", changes), tmp_path)
    words = ["--only", "MA-CC, d", "--seeds", "2", "--steps", "5", "--json"]
    assert command.main([*words, "--agent", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)["environments"]["MA-CC, dumbbell"]
    (row,) = (row for row in rows if row["kind"] == "agent")
    assert row["policy"].startswith("macc-rl-aqm, ")
    assert row["mbps"] > 0.1
    assert row["rtt_ms"] > 250
    (played,) = judge.trained([tmp_path])["MA-CC, dumbbell"]
    batch = played[2](1)
    batch.reset(0)
    assert batch.mask[0].tolist() == [False] * 3 + [True] * 2


def test_a_trained_agent_is_played_in_its_environments_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {"sampler": "dumbbell", "params": {"steps": 20}}
    changes = {"steps": 200, "num_envs": 4, "warmup": 100, "learning_starts": 100, "env": env,
               "validate_every": 0}  # fmt: skip
    training.train("macc", agents.settings("macc", changes), tmp_path)
    words = ["--seeds", "2", "--steps", "5", "--json", "--only", "dumbbell"]
    assert command.main([*words, "--agent", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)["environments"]["MA-CC, dumbbell"]
    (label,) = (row["policy"] for row in rows if row["kind"] == "agent")
    assert re.fullmatch(r"macc, \d{3,4} steps, seed 7", label)
    found = [name for name, made in judge.trained([tmp_path]).items() if made]
    assert found == ["MA-CC, dumbbell", "MA-CC, greedy_neighbours"]
    assert command.main([*words, "--agent", str(tmp_path / "none")]) == 2
    assert "no checkpoint: name a folder" in capsys.readouterr().err
    other = {**changes, "env": {"params": {"step_segments": 3}}}
    training.train("macc", agents.settings("macc", other), tmp_path / "other")
    assert command.main([*words, "--agent", str(tmp_path / "other")]) == 2
    assert "trained with env.params.step_segments of its own" in capsys.readouterr().err


def test_the_page_has_a_place_for_the_table(tmp_path: Path) -> None:
    text = Path("docs/environments.md").read_text(encoding="utf-8")
    assert page.MARKS.placed(text, "new\n", "x").count("new\n") == 1
    assert "<!-- end -->" in page.MARKS.placed(text, "new\n", "x")
    with pytest.raises(UserError, match="no place for the table"):
        page.MARKS.placed("nothing", "new", "x")


def test_some_rows_are_written_anew_and_all_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, out = "MA-CC, dumbbell", tmp_path / "page.md"
    monkeypatch.setitem(judge.PROBLEMS, where, judge.PROBLEMS[where][:3])
    lines = {name: [f"| {name} | old | 1 |", f"| {name} | older | 2 |"] for name in judge.PROBLEMS}
    words = ["--only", "bbell", "--seeds", "2", "--out", str(out)]
    made = page.table(lines, 2) + "\nThe classes\n\n| are | a table |\n"
    out.write_text(f"before\n{page.MARKS.begin}\n{made}{page.MARKS.end}\nafter\n")
    assert command.main(words) == 0
    text = out.read_text()
    assert f"| {where} | old" not in text
    assert text.count(f"| {where} | ") == 3
    others = [line for name, rows in lines.items() if name != where for line in rows]
    assert [line for line in text.split("\n") if "| old" in line] == others
    assert text.endswith(f"\n\nThe classes\n\n| are | a table |\n{page.MARKS.end}\nafter\n")
    again = text
    assert command.main(words) == 0
    assert out.read_text() == again
    assert command.main([*words, "--seeds", "3"]) == 2
    assert "isn't over 3 episodes" in capsys.readouterr().err
    out.write_text(text.replace("Nuwa, wireless, loss", "gone"))
    assert command.main(words) == 2
    assert "has no row of 'Nuwa, wireless, loss'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "1"], "at least 2"),
        (["--only", "QoS"], "no environment"),
        (["--out", "x.md"], "no such page"),
        (["--out", "docs/environments.md", "--steps", "3"], "leave --agent and --steps out"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(words) == 2
    assert message in capsys.readouterr().err


def test_windows_are_reached_and_kept_but_for_the_expflags_steps() -> None:
    batch, policy = TccoBatch(2, alternating, stagger=False), tcco_constant(150)
    batch.reset(0)
    for _ in range(40):
        batch.step(policy(batch))
    assert (np.abs(batch.targets - 150) <= batch.unit).all()


def test_a_constant_comes_down_from_where_slow_start_left_it_above_the_bound() -> None:
    batch, policy = TccoBatch(2, path_class(3.0, 20.0), stagger=False), tcco_constant(8)
    batch.reset(0)
    assert batch.targets.max() > 40, "a window of some queues"
    for _ in range(60):
        batch.step(policy(batch))
    assert (np.abs(batch.targets - 8) <= 1).all()
    assert batch.most.max() <= 32


def test_a_fixed_k_stays_and_thresholds_move_it() -> None:
    fixed = NuwaBatch(4, with_k(wireless, 3.0), stagger=False)
    moved, thresholds = NuwaBatch(4, wireless, stagger=False), nuwa_thresholds(0.2)
    fixed.reset(0)
    moved.reset(0)
    seen = set()
    for _ in range(40):
        fixed.step(nuwa_hold(fixed))
        moved.step(thresholds(moved))
        assert (fixed.values[:, 0, nuwa.GAIN] == 3000).all()
        seen |= {round(v) for v in moved.values[:, 0, nuwa.GAIN].tolist()}
    assert {1000, 9000} <= seen


def test_k_over_time_beats_every_large_fixed_k() -> None:
    rows = {row[0]: row for row in judge.PROBLEMS["Nuwa, wireless"]}
    fixed = [judge.play(rows[f"k {k}"], 32).returns for k in (7, 8, 9)]
    ruled = judge.play(rows["above T_d or below 2 ms"], 32).returns
    for returns in fixed:
        gain, half = judge.interval(ruled - returns)
        assert gain > half


@pytest.mark.parametrize(("name", "lossy"), [("no loss", False), ("loss", True)])
def test_halves_hold_what_they_say(name: str, lossy: bool) -> None:
    batch = judge.PROBLEMS[f"Nuwa, wireless, {name}"][0][2](6)
    batch.reset(0)
    losses = np.array([network.link("cell")["loss_model"] for network in batch.networks])
    assert ((losses > 0) == lossy).all()
    batch.close()


def test_teams_go_to_their_window_and_routers_drop_above_theirs() -> None:
    batch, policy = MaccBatch(4, greedy_neighbours, stagger=False), macc_policy(150, 0.0)
    batch.reset(0)
    senders = batch.params.senders
    dropped = 0
    for _ in range(30):
        actions = policy(batch)
        queue = batch.values[:, senders:, 0]
        assert np.array_equal(actions[:, senders:], queue > 0)
        dropped += int(actions[:, senders:].sum())
        batch.step(actions)
    assert dropped > 0
    for i in range(4):
        assert (np.abs(batch.windows(i) - 150) <= 5).all()


def test_a_router_that_drops_by_its_queue_beats_never_dropping_and_codel() -> None:
    never, behind = "MA-CC, greedy_neighbours", "MA-CC, greedy_neighbours behind CoDel"
    rows = {row[0]: row for name in (never, behind) for row in judge.PROBLEMS[name]}
    window = "250 segments"
    keep, codel, rule = (
        judge.play(rows[name], 12).returns
        for name in (window, f"{window}, CoDel", f"{window}, drop above 300 packets")
    )
    for other in (keep, codel):
        gain, half = judge.interval(rule - other)
        assert gain - half > 0


def test_routers_are_compared_at_the_same_windows() -> None:
    for name in ("MA-CC, greedy_neighbours", "MA-CC, many_senders"):
        behind = judge.PROBLEMS[f"{name} behind CoDel"]
        windows = [row[0] for row in judge.PROBLEMS[name] if row[1] == judge.CONSTANT]
        assert [f"{w}, CoDel" for w in windows] == [r[0] for r in behind if r[1] == judge.CONSTANT]
        for rows in (judge.PROBLEMS[name], behind):
            assert [row[0] for row in rows if "drop" in row[0]] == [
                f"{w}, drop above 300 packets" for w in windows
            ]


def test_a_policy_that_stands_in_two_problems_is_played_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played = []

    def play(row: judge.Played, seeds: int, steps: int | None) -> judge.Result:
        played.append(row[0])
        ones = np.ones(seeds)
        return judge.Result(row[0], row[1], np.arange(seeds) + len(played), ones, 300.0 * ones)

    monkeypatch.setattr(judge, "play", play)
    assert command.main(["--only", "many_senders", "--seeds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["environments"]
    assert len(found) == 2
    dropping = [
        {row["policy"]: row["return"] for row in rows if "drop" in row["policy"]}
        for rows in found.values()
    ]
    assert dropping[0] == dropping[1]
    assert len(played) == len(set(played)) == sum(map(len, found.values())) - len(dropping[0])


def test_random_routers_seldom_drop() -> None:
    batch, policy = MaccBatch(64, greedy_neighbours, stagger=False), at_random(0)
    batch.actions[:] = 0
    drawn = np.concatenate([policy(batch)[:, batch.params.senders :] for _ in range(50)])
    assert 0.01 < drawn.mean() < 0.03
