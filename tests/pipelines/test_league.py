"""The league on a few scenarios: its command, what it keeps, its page, and users' own files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines import cli
from pipelines.league import draw, kept, page, runs, standings
from pipelines.league import figures as pictures
from pipelines.league.families import FAMILIES, STANDINGS, Family

pytestmark = pytest.mark.xdist_group("netsim")

ROOT = Path(__file__).parents[2]
FEW = ["--each", "2", "--cc", "cubic,vegas,lia", "--jobs", "1"]
SHORT = ["--each", "2", "--cc", "reno,vegas", "--only", "lossy", "--json"]
KEYS = ["cc", "family", "win_rate", "power", "worst", "low", "high"]
GOLDEN = ROOT / "tests" / "golden"


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def no_run(job: runs.Job) -> Any:
    raise AssertionError(f"{job.cc} plays {job.drawn.name}")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the runs of `FEW` are finished, with their page."""
    folder = tmp_path_factory.mktemp("league")
    assert cli.main(["league", *FEW, "--work", str(folder), "--out", str(folder / "l.md")]) == 0
    return folder


def test_rows_are_as_programs_expect_them(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished runs are not played again, and give the same rows."""
    monkeypatch.setattr(runs, "play", no_run)
    assert cli.main(["league", *FEW, "--work", str(work), "--json"]) == 0
    found = rows(capsys)
    assert all(list(row) == KEYS for row in found)
    assert [row["family"] for row in found][:2] == ["constant"] * 2
    assert {row["family"] for row in found} == {*FAMILIES, *STANDINGS}
    several = {name for name, family in FAMILIES.items() if family.standing == "multipath"}
    assert {r["family"] for r in found if r["cc"] == "lia"} == {*several, "multipath"}
    for row in found:
        assert 0 <= row["worst"] <= row["low"] <= row["power"] <= row["high"] <= 1.01
        assert 0 <= row["win_rate"] <= 1
    for family in {*FAMILIES, *STANDINGS}:
        group = [row for row in found if row["family"] == family]
        assert [r["power"] for r in group] == sorted((r["power"] for r in group), reverse=True)
        assert sum(r["win_rate"] for r in group) == pytest.approx(len(group) / 2)


def test_one_alone_has_nobody_to_win_against(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "play", no_run)
    arguments = ["--each", "2", "--cc", "vegas", "--only", "constant,friendly", "--json"]
    assert cli.main(["league", *arguments, "--work", str(work)]) == 0
    found = rows(capsys)
    assert [(r["cc"], r["family"]) for r in found] == [("vegas", "constant"), ("vegas", "friendly")]
    assert [row["win_rate"] for row in found] == [None, None]


def test_the_page_is_made_of_the_kept_figures(work: Path) -> None:
    figures = kept.read(work / "l")
    ranking = standings.rankings(figures.played, figures.rows)
    drawings = pictures.written(work / "l", ranking)
    assert [path for path, _ in drawings.values()] == ["l/profiles.svg", "l/delay.svg"]
    text = (work / "l.md").read_text(encoding="utf-8")
    assert text == page.page(figures, ranking, drawings)
    assert all((work / "l" / f"{name}.svg").read_text().startswith("<svg") for name in drawings)
    for heading in ("## One path", "## Several paths (MPTCP)", "### mptcp-shared", "### friendly,"):
        assert heading in text
    assert figures.header.digest in text
    cubic = [line for line in text.splitlines() if line.startswith("| `cubic` |")]
    assert sum(line.count("1.00 [1.00, 1.00]") == 2 for line in cubic) == 2, "in CUBIC's place"


def test_a_killed_league_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["league", *SHORT, "--jobs", "1", "--work", str(tmp_path / "killed")]
    process = subprocess.Popen([sys.executable, "-m", "pipelines.cli", *given], cwd=ROOT,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    file = tmp_path / "killed" / "runs.jsonl"
    while process.poll() is None and not (file.is_file() and file.read_text().count("\n")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # As if it had been in the midst of a line, whatever the moment was.
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:2]) + '{"half', encoding="utf-8")
    done = len(lines[:2])
    real, played = runs.play, []
    monkeypatch.setattr(runs, "play", lambda job: played.append(job) or real(job))
    assert cli.main(given) == 0
    resumed = rows(capsys)
    assert len(played) == 4 - done
    monkeypatch.setattr(runs, "play", real)
    assert cli.main(["league", *SHORT, "--jobs", "2", "--work", str(tmp_path / "other")]) == 0
    assert rows(capsys) == resumed, "another folder, two processes"


def test_anybodys_traces_make_a_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mahimahi's form and times with rates; what is neither is counted and left out."""
    folder = tmp_path / "links"
    (folder / "inner").mkdir(parents=True)
    lines = "\n".join(str(ms) for ms in range(0, 90_000, 12))
    (folder / "one.up").write_text(lines, encoding="utf-8")
    (folder / "inner" / "two.txt").write_text("0 8\n40 2\n80 4\n", encoding="utf-8")
    (folder / "notes.csv").write_text("time,rate\n0,1\n", encoding="utf-8")
    (folder / ".hidden").write_text("?", encoding="utf-8")
    given = ["league", "--traces", str(folder), "--only", "own-traces", "--each", "2"]
    given += ["--cc", "reno,vegas", "--jobs", "1", "--work", str(tmp_path / "w"), "--json"]
    assert cli.main(given) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert {(row["cc"], row["family"]) for row in found} == {
        ("reno", "own-traces"), ("vegas", "own-traces"),
    }  # fmt: skip
    assert all(0.1 < row["power"] < 1 for row in found)
    assert "1 files left out" in printed.err
    assert "notes.csv" in printed.err
    assert ".hidden" not in printed.err
    (folder / "one.up").unlink()
    (folder / "inner" / "two.txt").unlink()
    assert cli.main(given) == 2
    assert "no capacity trace among 1 files" in capsys.readouterr().err


def test_a_scenario_file_makes_a_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    text = """
duration_s: 5
links: {a: {rate_mbps: 4, delay_ms: 10, queue_packets: 20}, back: {delay_ms: 10}}
flows:
  - {name: f, paths: [{forward: [a], back: [back]}]}
"""
    path.write_text(text, encoding="utf-8")
    given = ["league", "--scenario", str(path), "--only", "own-scenarios", "--jobs", "1"]
    given += ["--work", str(tmp_path / "w"), "--json"]
    assert cli.main([*given, "--cc", "reno,vegas,lia"]) == 0
    assert {row["cc"] for row in rows(capsys)} == {"reno", "vegas"}
    assert cli.main([*given, "--cc", "lia"]) == 2
    assert "coupled controls need several paths" in capsys.readouterr().err
    path.write_text(text.replace("name: f", "name: f, cc: reno"), encoding="utf-8")
    assert cli.main([*given, "--cc", "reno"]) == 2
    assert "every flow names its control" in capsys.readouterr().err


def test_a_line_makes_a_family_and_a_control_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Family("single-path", "a slow link", FAMILIES["constant"].draw,
                  {"rate_mbps": (1, 2), "rtt_ms": (20, 30), "queue": (1, 2)})  # fmt: skip
    monkeypatch.setitem(FAMILIES, "slow", slow)
    given = ["--only", "slow", "--each", "1", "--cc", "reno", "--jobs", "1", "--json"]
    assert cli.main(["league", *given, "--work", str(tmp_path)]) == 0
    assert [(row["cc"], row["family"]) for row in rows(capsys)] == [("reno", "slow")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cc cubix", "did you mean 'cubic'"),
        ("--cc agent", "unknown congestion control 'agent'"),
        ("--only constnt", "did you mean 'constant'"),
        ("--cc lia --only constant", "coupled controls need several paths"),
        ("--only own-traces", "give --traces too"),
        ("--each 0", "--each 0: give a whole number"),
        ("--jobs 0", "--jobs 0: give a whole number"),
        ("--traces no-such-folder", "no such folder"),
        ("--cc , --only lossy", "--cc: nobody to play there: give a name"),
    ],
)
def test_mistakes_are_one_clear_line(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["league", *words.split(), "--work", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_published_page_is_that_of_its_figures() -> None:
    """And of the list that the code draws: whoever changes a family makes the page anew."""
    figures = kept.read(ROOT / kept.FOLDER)
    drawn = draw.scenarios(FAMILIES)
    assert figures.header.digest == draw.digest(drawn), "make it anew: cczoo league --out ..."
    assert len(drawn) >= 200
    assert sorted(one for names in figures.played.values() for one in names) == sorted(
        one.name for one in drawn
    )
    text = (ROOT / "docs" / "league.md").read_text(encoding="utf-8")
    ranking = standings.rankings(figures.played, figures.rows)
    drawings = pictures.written(ROOT / kept.FOLDER, ranking)
    assert text == page.page(figures, ranking, drawings), "make it anew: cczoo league --out ..."
