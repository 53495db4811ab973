"""Trained policies in the league, beside the classical controls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.closedloop import Player
from pipelines import cli
from pipelines.league import draw, players, runs
from tests.models import random_policies

pytestmark = pytest.mark.xdist_group("netsim")


def test_a_policy_plays_where_it_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver of one path isn't put on several; its runs are kept as those of others are."""
    made = Player(random_policies.policy("nuwa"))
    monkeypatch.setattr(players, "opened", lambda one: made)
    given = ["league", "--each", "1", "--only", "traces,mptcp-separate", "--jobs", "1", "--json"]
    given += ["--cc", f"reno,{tmp_path}", "--work", str(tmp_path / "work")]
    assert cli.main(given) == 0
    first = json.loads(capsys.readouterr().out)
    assert {(row["cc"], row["family"]) for row in first} == {
        ("reno", "traces"), (str(tmp_path), "traces"), ("reno", "mptcp-separate"),
    }  # fmt: skip
    monkeypatch.setattr(runs, "play", None)
    assert cli.main(given) == 0
    assert json.loads(capsys.readouterr().out) == first
    other = Player(random_policies.policy("nuwa", seed=4))
    players.identity.cache_clear()
    monkeypatch.setattr(players, "opened", lambda one: other)
    with pytest.raises(TypeError):
        cli.main(given)
    players.identity.cache_clear()


def test_a_delay_is_of_policies_and_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a policy does late is played anew; the classical controls' runs stay."""
    policy = random_policies.policy("nuwa")
    monkeypatch.setattr(
        "pipelines.controllers.at", lambda found, name, delay: Player(policy, delay)
    )
    given = ["league", "--each", "1", "--only", "lossy", "--jobs", "1", "--json"]
    given += ["--work", str(tmp_path / "work"), "--cc"]
    for function in (players.opened, players.identity):
        function.cache_clear()
    rows, played, play = [], [], runs.play

    def counted(job: runs.Job) -> runs.Run:
        played.append(job.player)
        return play(job)

    monkeypatch.setattr(runs, "play", counted)
    for delay in ("0", "0", "40"):
        assert cli.main([*given, f"reno,{tmp_path}", "--delay", delay]) == 0
        rows.append({row["cc"]: row for row in json.loads(capsys.readouterr().out)})
    assert [(one.name, one.delay_ms) for one in played] == [
        ("reno", 0.0), (str(tmp_path), 0.0), (str(tmp_path), 40.0),
    ]  # fmt: skip
    assert rows[0] == rows[1]
    assert rows[2][str(tmp_path)]["power"] != rows[0][str(tmp_path)]["power"]
    assert cli.main([*given, "reno", "--delay", "5"]) == 2
    assert "no policy among --cc" in capsys.readouterr().err
    assert cli.main([*given, str(tmp_path), "--delay", "100"]) == 2
    assert "to below 100 ms" in capsys.readouterr().err
    for function in (players.opened, players.identity):
        function.cache_clear()


def test_routers_fit_nowhere_and_what_cannot_be_opened_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All queues of the league are FIFO; and a player that is named plays, or is refused."""
    (tmp_path / "empty").mkdir()
    given = ["league", "--only", "constant", "--each", "1", "--work", str(tmp_path / "work")]
    assert cli.main([*given, "--cc", f"reno,{tmp_path}/empty"]) == 2
    assert "empty: no checkpoint" in capsys.readouterr().err
    spec = next(one.spec for one in draw.scenarios(("constant",), 1))
    team = Player(random_policies.policy("macc"))
    monkeypatch.setattr(players, "opened", lambda one: team)
    assert not players.fits(players.Entrant("team"), spec)
    routers = Player(team.policy.only("macc-aqm"))
    for one in (team, routers):
        monkeypatch.setattr(players, "opened", lambda _, one=one: one)
        assert cli.main([*given, "--cc", f"{tmp_path}/empty"]) == 2
        assert "it runs routers, and all queues here are FIFO" in capsys.readouterr().err
    senders = Player(team.policy.only("macc-tcp"))
    monkeypatch.setattr(players, "opened", lambda one: senders)
    assert players.fits(players.Entrant("senders"), spec)


def test_an_unknown_policy_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["league", "--cc", "cubic,tcc0"]) == 2
    assert "did you mean 'tcco'" in capsys.readouterr().err
