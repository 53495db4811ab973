"""Simulated decisions: killed commands go on, seeds give the same bytes, all controls are there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from data import yaml_text
from data.decisions import files
from data.netsim.cc import CONTROLS, COUPLED
from models.decisions.simulated import runs
from models.decisions.tcco import Settings
from pipelines.decisions import generate, plan, work
from pipelines.league import draw
from pipelines.league.families import FAMILIES

pytestmark = pytest.mark.xdist_group("netsim")
TINY = ["--scenarios", "1", "--replicas", "1", "--seconds", "0.2", "--jobs", "1"]
KILLED_AFTER = 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny set, whose command was killed once on the way."""
    out = tmp_path_factory.mktemp("decisions") / "set"
    keep, kept = files.keep, []

    def killed(path: Path, content: bytes) -> None:
        if len(kept) == KILLED_AFTER:
            raise KeyboardInterrupt
        kept.append(path)
        keep(path, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "keep", killed)
        assert generate.main([*TINY, "--out", str(out)]) == 1
    assert len(list(out.rglob("*.parquet"))) == KILLED_AFTER
    before = hashes(out)
    assert generate.main([*TINY, "--out", str(out)]) == 0
    assert before.items() <= hashes(out).items(), "what was finished stays as it was"
    return out


def hashes(out: Path) -> dict[str, str]:
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in out.rglob("*.parquet")
    }


def test_what_is_missing_is_made_again_to_the_byte(made: Path) -> None:
    before = hashes(made)
    gone = sorted(before)[:: len(before) // 4]
    for name in gone:
        (made / name).unlink()
    assert generate.main([*TINY, "--out", str(made)]) == 0
    assert hashes(made) == before
    assert len(gone) > 3


def test_every_control_and_every_family_is_there(made: Path) -> None:
    table = pl.read_parquet(made / "**/*.parquet", hive_partitioning=True)
    assert set(table["behaviour"]) == set(CONTROLS) - {"agent"}
    assert len(set(table["behaviour"])) == 21
    family = pl.col("scenario").str.split("-0").list.first()
    of = table.select("behaviour", family).unique().group_by("behaviour").len()
    for name, count in of.iter_rows():
        assert count == (3 if name in COUPLED else len(FAMILIES)), name
    assert set(table["split"]) == {"train"}
    assert table.filter(pl.col("truncated")).select("run", "subflow").is_unique().all()
    assert not table["last"].any()


def test_maccs_decisions_are_of_one_path(tmp_path: Path) -> None:
    recipe = plan.Recipe(agent="macc", scenarios=1, replicas=1, seconds=0.4)
    tasks = plan.tasks(recipe)
    assert len({task.control for task in tasks}) == 16
    assert {task.family for task in tasks} == {
        "constant",
        "stepping",
        "traces",
        "lossy",
        "friendly",
    }
    [content] = work.work(recipe, tasks[0]).files.values()
    (tmp_path / "a.parquet").write_bytes(content)
    [run] = files.runs(tmp_path)
    assert run.observation.shape == (2, 1, 3)
    assert files.about(tmp_path).agent == "macc"
    assert files.about(tmp_path).command.endswith(
        "--agent macc --scenarios 1 --replicas 1 --seconds 0.4"
    )


def test_the_sheet_counts_what_is_there(made: Path) -> None:
    sheet = json.loads((made / "sheet.json").read_text())
    table = pl.read_parquet(made / "**/*.parquet")
    assert sheet["decisions"] == table.height
    assert sheet["runs"] == table["run"].n_unique() == sum(1 for _ in files.runs(made))
    assert sheet["complete"]
    assert sheet["columns"]["rtt_us"]["most"] == table["rtt_us"].max()
    assert sheet["actions"]["0"] == pytest.approx((table["action"] == 2).mean())
    assert sheet["by"]["behaviour"]["bbr"]["decisions"] == (table["behaviour"] == "bbr").sum()
    page = (made / "README.md").read_text()
    assert f"{table.height} decisions" in page
    assert sheet["command"] in page
    assert set(json.loads((made / "scenarios.json").read_text())) == set(table["scenario"])


def test_a_folder_of_other_settings_is_refused(made: Path, capsys: Any) -> None:
    assert generate.main([*TINY, "--seed", "19", "--out", str(made)]) == 2
    assert "another seed" in capsys.readouterr().err
    assert generate.main([*TINY, "--share", "2", "--out", str(made / "other")]) == 2
    assert "share" in capsys.readouterr().err


def test_a_run_depends_on_its_play_alone_and_controls_on_the_same_seed() -> None:
    recipe = plan.Recipe(scenarios=3, seconds=1.0)
    [cubic] = plan.plays(recipe, plan.Task("cubic", "mptcp-shared", 0)).values()
    [vegas] = plan.plays(recipe, plan.Task("vegas", "mptcp-shared", 0)).values()
    together, [alone] = runs(cubic, 50, Settings()), runs(cubic[1:2], 50, Settings())
    assert np.array_equal(together[1].observation, alone.observation)
    assert np.array_equal(together[1].reward, alone.reward)
    assert [play.seed for play in cubic] == [play.seed for play in vegas]
    assert len({play.seed for play in cubic}) == 3


def test_no_scenario_is_one_of_the_leagues() -> None:
    recipe = plan.Recipe()
    ours = [one for family in FAMILIES for one in plan.scenarios(family, recipe.seed, 40)]
    assert len(ours) == 320

    def settings(drawn: list[draw.Drawn]) -> set[str]:
        return {one.spec.model_dump_json(exclude={"title"}) for one in drawn}

    assert not settings(ours) & settings(draw.scenarios(FAMILIES))


def test_the_whole_set_is_as_large_as_it_is_said_to_be() -> None:
    recipe, paths = plan.Recipe(), {}
    for family in FAMILIES:
        drawn = plan.scenarios(family, recipe.seed, recipe.scenarios)
        paths[family] = sum(len(one.spec.flows[0].paths) for one in drawn)
    total = sum(paths[t.family] * plan.steps(recipe, t.family) for t in plan.tasks(recipe))
    assert total > 60e6
    splits = [plan.split_of(number) for number in range(recipe.scenarios)]
    assert [splits.count(name) for name in plan.SPLITS] == [32, 4, 4]


def test_a_sample_holds_some_of_everything_that_the_whole_has() -> None:
    whole, sample = plan.Recipe(), plan.Recipe(share=0.003)
    names = {}
    for recipe in (whole, sample):
        names[recipe.share] = {
            (task.control, task.family, play.name, play.seed)
            for task in plan.tasks(recipe)
            for plays in plan.plays(recipe, task).values()
            for play in plays
        }
    assert names[0.003] < names[1.0]
    every = {(control, family) for control, family, *_ in names[1.0]}
    assert {(control, family) for control, family, *_ in names[0.003]} == every
    assert len(names[0.003]) < 0.02 * len(names[1.0])


def test_the_stage_depends_on_the_code_that_decides_what_is_in_the_set() -> None:
    root = Path(generate.__file__).parents[2]
    [stage] = yaml_text.read(root / "pipelines/decisions/dvc.yaml")["stages"].values()
    named = [root / name for name in stage["deps"]]
    assert all(path.exists() for path in named)
    for pattern in generate.CODE:
        found = list(root.glob(pattern))
        assert found, pattern
        assert all({path, *path.parents} & set(named) for path in found), pattern
