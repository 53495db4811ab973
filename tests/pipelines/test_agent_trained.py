"""A tiny training from a file's budget to its verdict and the report's section."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from data.errors import UserError
from models.rl import agents
from models.rl import best as validating
from models.rl.judge import episodes_seed
from models.rl.policy import Greedy, kept, untrained
from pipelines import cli
from pipelines.reporting import trained
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.rl import given, judging
from pipelines.rl.results import CURVE, TRAJECTORY, VERDICT
from pipelines.studies.environments import judge

BUDGET = """
agents:
  macc:
    episodes: 8
    settings: {steps: 128, num_envs: 4, validate_every: 64, validation_episodes: 2, warmup: 32,
               learning_starts: 32, report_every: 1}
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with a budget; whole episodes would take long, and show no more."""
    (tmp_path / "params.yaml").write_text(BUDGET)
    monkeypatch.chdir(tmp_path)
    play = judge.play
    monkeypatch.setattr(judge, "play", lambda row, n, seed=0: play(row, n, 6, seed))
    return tmp_path


def run(*words):
    line = ("train", "macc", "--params", "params.yaml", "--no-track", "--resume")
    return cli.main([*line, "--verdict", "reports/agents/macc", *words])


def test_a_budget_becomes_a_verdict_a_section_and_a_congestion_control(checkout, capsys):
    assert run("--json") == 0
    printed = capsys.readouterr()
    place = checkout / "reports" / "agents" / "macc"
    said = json.loads(printed.out)
    assert said["verdict"] == "reports/agents/macc/verdict.json"
    assert set(said["baselines"]) == {"random", "constant", "script"}
    assert said["return"]["iqm"] < 5.0
    assert sorted(path.name for path in place.iterdir()) == [
        "curve.json", "seed-7", "trajectory.json", "verdict.json",
    ]  # fmt: skip
    assert not list((checkout / "reports" / "rl").glob("*/*")), "the training has moved"

    found = VERDICT.read(place)
    assert found.text[0] in printed.err
    kinds = {row.kind: row.episodes for row in found.rows}
    constants = {row.episodes for row in found.rows if row.kind == "constant"}
    assert constants == {4, 8}
    assert kinds | {"constant": 8} == dict.fromkeys(kinds, 8)
    whole = [row.policy for row in found.rows if row.kind == "constant" and row.episodes == 8]
    assert len(whole) == judging.KEPT
    assert found.over["constant"].policy in whole
    assert found.settings["steps"] == 128
    assert found.cpu_s > 0

    shown = TRAJECTORY.read(place).runs
    assert set(shown) == {"macc", "cubic"}
    for one in shown.values():
        assert len(one.windows) == 3, "senders"
        assert len(one.time_s) == len(one.mbps) == len(one.windows[0])
        assert one.time_s[-1] == pytest.approx(60.0, abs=1.0)
    assert np.mean(shown["cubic"].mbps) == pytest.approx(24.0, abs=2.0), "docs/training.md"

    assert CURVE.read(place).points[-1].validation is not None
    assert set(CURVE.read(place).levels) == {"random", "untrained", "constant", "script"}
    html = trained.macc(Inputs(checkout))
    for text in ("macc beside CUBIC", "Learning curve of macc", "best constant", "128 steps",
                 found.over["constant"].policy):  # fmt: skip
        assert text in html
    with pytest.raises(MissingInput, match="missing"):
        trained.tcco(Inputs(checkout))

    assert cli.main(["report", "--verdicts"]) == 0
    told = capsys.readouterr()
    assert found.text[0] in told.out
    assert "dvc repro agent-tcco" in told.err
    assert cli.main(["report", "--verdicts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["macc"]["met"] == found.met


def test_what_fails_on_the_way_leaves_no_verdict_and_is_gone_on_with(checkout, monkeypatch):
    play_all = judging.play_all

    def broken(*_):
        raise UserError("out of luck")

    monkeypatch.setattr(judging, "play_all", broken)
    assert run() == 2
    assert not (checkout / "reports" / "agents" / "macc").exists()
    (kept_back,) = (checkout / "reports" / "rl").glob("macc-*/seed-7/checkpoint-*")
    begun = kept_back.stat().st_mtime_ns
    moved = checkout / "reports" / "agents" / "macc"

    def judged(*asked):
        # The training isn't repeated: it is the one that was finished.
        assert kept_back.stat().st_mtime_ns == begun
        return play_all(*asked)

    monkeypatch.setattr(judging, "play_all", judged)
    assert run() == 0
    assert (moved / "seed-7" / kept_back.name / "networks.safetensors").is_file()
    assert not kept_back.exists()
    # Somebody's own file there is seen before anything is trained.
    (moved / "notes.txt").write_text("mine")
    assert run() == 2
    assert (moved / "notes.txt").read_text() == "mine"
    assert not list((checkout / "reports" / "rl").glob("*/*"))


def test_other_settings_begin_in_a_folder_of_their_own():
    def name(verdict, **changes):
        args = argparse.Namespace(task="macc", verdict=verdict)
        return given.folder(args, agents.settings("macc", changes))

    one = name(Path("x"), rate=0.1)
    assert one.startswith("macc-")
    assert one == name(Path("y"), rate=0.1, threads=2, checkpoint_min=1.0, seed=9)
    assert one != name(Path("x"), rate=0.2)
    assert one != name(Path("x"), rate=0.1, steps=9)
    assert name(None, rate=0.1) == "macc"


def test_levels_beside_a_curve_are_of_the_very_episodes_of_validation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(BUDGET)
    line = ("train", "macc", "--params", "params.yaml", "--no-track", "--out", "out")
    assert cli.main([*line, "--set", "steps=64"]) == 0
    name, params, module = kept(tmp_path / "out" / "seed-7")
    points = json.loads((tmp_path / "out" / "seed-7" / "curve.json").read_text())
    (kept_best,) = {point["validation"] for point in points if "validation" in point}
    make = judge.by_hand(name, "dumbbell")[0][2]
    row = (name, judge.AGENT, make, lambda: Greedy(module))
    seed = episodes_seed(validating.VALIDATION + params.seed)
    found = judge.play(row, params.validation_episodes, seed=seed)
    assert 300 * found.returns.mean() == pytest.approx(kept_best)
    before = untrained(name, params).state_dict()
    assert any(not np.array_equal(before[k], v) for k, v in module.state_dict().items())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "macc-qmix", "--params", "params.yaml"), "--params: has settings of tcco"),
        (("train", "macc-qmix", "--verdict", "x"), "--verdict: of a training of tcco"),
        (("train", "macc", "--verdict", "x", "--tune", "2"), "and not of a search"),
        (("train", "macc", "--params", "none.yaml"), "none.yaml"),
        (
            ("train", "macc", "--verdict", "x", "--set", "validate_every=0", "--no-track"),
            "macc.settings.validate_every",
        ),
    ],
)
def test_what_has_no_verdict_is_refused(checkout, capsys, words, message):
    assert cli.main([*words]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.strip().splitlines()) == 1
