"""The league on users' own files and arguments: names, refusals, and what a page says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.errors import UserError
from models.closedloop import Player
from pipelines import cli
from pipelines.league import draw, fitting, kept, own, page, players, runs, standings
from pipelines.league import figures as pictures
from pipelines.league.families import FAMILIES
from pipelines.league.metrics import METRICS
from tests.models import random_policies

pytestmark = pytest.mark.xdist_group("netsim")

SCENARIO = """
duration_s: 4
links: {a: {rate_mbps: 4, delay_ms: 10, queue_packets: 20}, back: {delay_ms: 10}}
flows:
  - {name: f, paths: [{forward: [a], back: [back]}]}
"""


def no_run(job: runs.Job) -> Any:
    raise AssertionError(f"{job.cc} plays {job.drawn.name}")


def scenario_file(path: Path, text: str = SCENARIO) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_files_of_one_name_are_two_scenarios(tmp_path: Path) -> None:
    first, second = (scenario_file(tmp_path / folder / "my.yaml") for folder in "ab")
    drawn = own.of_scenarios([first, second])
    names = [one.name for one in drawn]
    assert names == [f"own-scenarios/{path} seed {i}" for path in (first, second) for i in range(3)]
    assert [one.seed for one in drawn] == [0, 1, 2] * 2
    with pytest.raises(UserError, match="is there twice"):
        own.of_scenarios([first, str(tmp_path / "a" / ".." / "a" / "my.yaml")])


def test_no_trace_has_the_name_of_a_drawn_scenario(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "lossy").write_text("0 8\n40 2\n80 4\n", encoding="utf-8")
    drawn, _ = own.of_traces(tmp_path / "links", tmp_path / "work", each=2)
    assert [one.name for one in drawn] == ["own-traces/lossy-00", "own-traces/lossy-01"]
    assert not {one.name for one in drawn} & {one.name for one in draw.scenarios(FAMILIES, each=2)}


def places(values: dict[str, list[float]]) -> list[standings.Place]:
    rows = {
        (f"s{i}", cc): dict.fromkeys(METRICS) | {"power": value, "goodput": value}
        for cc, powers in values.items()
        for i, value in enumerate(powers)
    }
    names = list(dict.fromkeys(name for name, _ in rows))
    return standings.rankings({"own-scenarios": names}, rows)["own-scenarios"]


@pytest.mark.parametrize("times", [1, 3])
def test_one_scenario_has_no_interval(times: int) -> None:
    """Nor has one without chance, whatever the seeds are."""
    found = places({"reno": [0.34] * times, "vegas": [0.5] * times})
    for place in found:
        assert place.row()["low"] is place.row()["high"] is None
        assert all(one.low is None for one in (place.behind, *place.metrics.values()))
        assert place.wins is not None
        assert place.wins.low is None
    assert found[1].row()["power"] == pytest.approx(0.34)
    lines = [*page.standing(found), *page.by_family(found)]
    assert not any("[" in line or "**" in line for line in lines)
    assert any("| 0.34 | 0 |" in line for line in lines)
    low = places({"reno": [0.34, 0.34], "vegas": [0.5, 0.4]})[1].power.low
    assert low == pytest.approx(0.34), "two scenarios, in which reno has the same"


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("steps: [[0, 4], [1, 0]]", "carries nothing in the measured time, 2 to 4 s"),
        ("queue: droptail", "no link on a path has a rate"),
    ],
)
def test_a_scenario_without_power_is_refused_before_anybody_plays(
    link: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(runs, "play", no_run)
    text = SCENARIO.replace("rate_mbps: 4", link).replace(", queue_packets: 20", "")
    path = scenario_file(tmp_path / "dead.yaml", f"warmup_s: 2{text}")
    given = ["league", "--scenario", path, "--only", "own-scenarios", "--cc", "reno"]
    assert cli.main([*given, "--jobs", "1", "--work", str(tmp_path / "w")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "dead.yaml" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [("page", "give a file with an ending"), ("there.d", "a folder"), ("taken.md", "is a file")],
)
def test_a_page_without_a_place_is_refused_at_the_start(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(runs, "play", no_run)
    (tmp_path / "there.d").mkdir()
    (tmp_path / "taken").touch()
    before = sorted(tmp_path.iterdir())
    assert cli.main(["league", "--cc", "reno", "--jobs", "1", "--out", str(tmp_path / name),
                     "--work", str(tmp_path / "w")]) == 2  # fmt: skip
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_who_fits_nowhere_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, name = Player(random_policies.policy("nuwa")), str(tmp_path)
    monkeypatch.setattr(players, "opened", lambda one: made)
    own_one, reno, lia, olia = map(players.Entrant, (name, "reno", "lia", "olia"))
    several, one = draw.scenarios(["mptcp-separate"], each=1), draw.scenarios(["lossy"], each=1)
    with pytest.raises(UserError) as reason:
        made.check(several[0].spec)
    with pytest.raises(UserError) as caught:
        fitting.jobs([own_one], several)
    assert str(caught.value) == f"--cc: nobody to play there: {name}: {reason.value}"
    assert [job.cc for job in fitting.jobs([own_one, reno], several)] == ["reno"]
    assert capsys.readouterr().err == f"in none of these scenarios: {name}: {reason.value}\n"
    assert [job.cc for job in fitting.jobs([lia, reno, olia], one)] == ["reno"]
    line = "in none of these scenarios: lia, olia: coupled controls need several paths\n"
    assert capsys.readouterr().err == line


def test_a_page_shows_its_own_league_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Own families are printed too; the page tells its command; no figure of an earlier one."""
    real = runs.play
    monkeypatch.setattr(runs, "play", lambda job: {**real(job), "cpu_s": 1.0})
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a-b").write_text("0 8\n40 2\n80 4\n", encoding="utf-8")
    single = ",".join(name for name, one in FAMILIES.items() if one.standing == "single-path")
    out, folder = tmp_path / "l.md", tmp_path / "l"
    shared = ["--each", "1", "--seed", "7", "--out", str(out)]
    given = ["league", "--cc", "vegas", "--only", f"{single},own-traces"]
    given += ["--traces", str(tmp_path / "links"), *shared]
    rest = ["--jobs", "1", "--work", str(tmp_path / "w")]
    assert cli.main([*given, *rest]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.endswith(":")] == [
        "one path:", "own-traces:",
    ]  # fmt: skip
    text = out.read_text(encoding="utf-8")
    assert f"Made by `cczoo {' '.join(given)}` " in text
    assert "(a-b-00)" in text
    assert text.count(".svg") == 2
    head = json.loads((folder / "league.json").read_text(encoding="utf-8"))
    assert (head["runs"], head["cpu_s"]) == (6, 6.0), "without CUBIC's in its place"
    (folder / "mine.svg").write_text("<svg/>", encoding="utf-8")
    assert cli.main(["league", "--cc", "vegas", "--only", "constant", *shared, *rest]) == 0
    assert ".svg" not in out.read_text(encoding="utf-8")
    assert [path.name for path in folder.glob("*.svg")] == ["mine.svg"]
    figures = kept.read(folder)
    ranking = standings.rankings(figures.played, figures.rows)
    (folder / "delay.svg").write_text("<svg/>", encoding="utf-8")
    pictures.write(folder, figures, ranking)
    assert (folder / "delay.svg").is_file(), "not of this command"
    assert pictures.written(folder, ranking) == {}
