"""What is published of trainings of several seeds: statistics on made-up numbers, files, page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from data.errors import UserError
from models.rl import agents, training
from pipelines.rl.cost import Cost
from pipelines.studies.agents import command, figures, fresh, kept, page, publish, trainings
from pipelines.studies.agents.kept import Played, Published, Seed
from pipelines.studies.agents.statistics import next_seed, over_seeds, statistics
from pipelines.studies.environments import judge

pytestmark = pytest.mark.xdist_group("netsim")

ROOT = Path(__file__).parents[2]
WHERE = "MA-CC, dumbbell"
TINY = {"steps": 256, "num_envs": 4, "warmup": 64, "learning_starts": 64, "report_every": 64,
        "validate_every": 128, "validation_episodes": 2,
        "env": {"sampler": "dumbbell"}}  # fmt: skip
RNG = np.random.default_rng(3)


def by_hand(episodes: int = 6) -> list[Played]:
    """A random policy, two constants of which the second is better, and a script."""
    means = {"random": ("random", 1.0), "100 segments": ("constant", 1.5),
             "200 segments": ("constant", 2.0), "rule": ("script", 2.5)}  # fmt: skip
    return [
        Played(name=name, kind=kind, returns=[mean + 0.01 * i for i in range(episodes)],
               mbps=20.0, rtt_ms=300.0)
        for name, (kind, mean) in means.items()
    ]  # fmt: skip


def published(scores: Any, agent: str = "macc", first: int = 7) -> Published:
    cost = Cost(command="cczoo train macc --seeds 3", commit="c" * 40, lock="1" * 64,
                cpu="a processor", cpu_s=360.0, wall_s=400.0, runs=1)  # fmt: skip
    seeds = {
        str(first + i): Seed(
            steps=120000, best_steps=90000, network=f"{i}", cost=cost,
            played=Played(name=f"seed {first + i}", kind="agent", returns=list(row), mbps=28.0,
                          rtt_ms=283.5))
        for i, row in enumerate(scores)
    }  # fmt: skip
    params = agents.settings(agent, {"steps": 120000}).model_dump(mode="json", by_alias=True)
    settings = {key: value for key, value in params.items() if key not in trainings.OWN}
    hand = by_hand(len(scores[0]))
    return Published(
        agent=agent, problem=WHERE, settings=settings,
        command=publish.commands(agent, settings, sorted(map(int, seeds))),
        episodes=len(scores[0]), first=publish.FIRST, by_hand=hand, seeds=seeds,
        statistics=statistics(np.array(scores), hand),
    )  # fmt: skip


def test_differences_and_improvements_are_paired_by_episode() -> None:
    """An agent above the script in all episodes but the last, however much episodes differ."""
    hand = by_hand()
    script = np.array(hand[-1].returns)
    hard = np.array([0.0, 50.0, -30.0, 10.0, 5.0, 0.0])
    hand = [one.model_copy(update={"returns": list(one.returns + hard)}) for one in hand]
    scores = script + hard + np.array([0.1, 0.1, 0.1, 0.1, 0.1, -0.1]) + np.zeros((5, 1))
    found = statistics(scores, hand)
    assert set(found.beside) == {"random", "constant", "script"}
    assert found.beside["constant"].name == "200 segments"
    assert found.beside["script"].difference.value == pytest.approx(0.1)
    assert found.beside["script"].improvement.value == pytest.approx(5 / 6)
    assert found.beside["random"].improvement.value == 1
    # All seeds do the same, so drawing others changes nothing.
    low, high = found.beside["script"].difference.low, found.beside["script"].difference.high
    assert (low, high) == pytest.approx((0.1, 0.1))


def test_an_interval_of_whole_seeds_is_as_wide_as_seeds_differ() -> None:
    """Episodes don't make a training's luck smaller, as drawing within each would have it."""
    scores = np.arange(10.0)[:, None] + np.zeros((10, 40))
    found = statistics(scores, [])
    assert found.iqm.value == pytest.approx(found.stratified.value)
    assert found.iqm.high - found.iqm.low > 3
    assert found.stratified.high - found.stratified.low < 1.5
    assert found.beside == {}
    assert over_seeds(lambda one: one.mean(axis=(-2, -1)), scores).value == pytest.approx(4.5)


def test_the_next_seed_lands_in_its_interval_as_often_as_it_says() -> None:
    """Coverage over made-up sets of ten seeds; that of the mean would hold far fewer."""
    drawn = RNG.normal(3.0, 0.2, (2000, 11))
    limits = [next_seed(row[:10]) for row in drawn]
    inside = [one.low <= row[10] <= one.high for one, row in zip(limits, drawn, strict=True)]
    assert 0.935 < np.mean(inside) < 0.965
    row = drawn[0, :10]
    half = stats.t.ppf(0.975, 9) * row.std(ddof=1) * np.sqrt(1.1)
    assert limits[0].high - limits[0].low == pytest.approx(2 * half)
    two = next_seed(np.array([1.0, 1.2]))
    assert two.high - two.low == pytest.approx(2 * stats.t.ppf(0.975, 1) * np.sqrt(1.5 * 0.02))


@pytest.mark.parametrize("count", [2, 3, 10])
def test_the_page_says_what_the_files_have(count: int, tmp_path: Path) -> None:
    """Any number of seeds from two on; through the files, as the command goes."""
    one = published((2.7 + 0.1 * RNG.normal(size=(count, 6))).round(4).tolist())
    kept.file("macc").write(tmp_path, one)
    points = [{"steps": 100.0 * i, "return": 10.0 * i, "loss": 1.0}
              | ({"validation": 20.0 * i} if i % 2 else {}) for i in range(1, 8)]  # fmt: skip
    kept.write_curves(tmp_path, "macc", kept.curves_of({7 + i: points for i in range(count)}))
    assert kept.agents(tmp_path) == ["macc"]
    again = kept.file("macc").read(tmp_path)
    assert again == one
    curves = kept.read_curves(tmp_path, "macc")
    assert curves["validation"].null_count() == 3 * count
    figures.write(tmp_path, again, curves)
    text = page.page({"macc": again}, "agents")
    assert f"{count} seeds of 120000 steps, 6 test episodes" in text
    assert f"All trainings took {count * 0.1:.2f} hours" in text
    assert f"    cczoo train macc --set steps=120000 --seeds {count}\n" in text
    assert f"| **macc** | {one.statistics.iqm.value:.3f} [" in text
    assert "best constant: 200 segments" in text
    assert f"`{'1' * 64}`" in text
    for name in figures.DRAWINGS:
        assert f"(agents/macc-{name}.svg)" in text
        assert (tmp_path / f"macc-{name}.svg").read_text(encoding="utf-8").startswith("<svg")
    summary = page.summary(again)
    assert summary["seeds"] == list(range(7, 7 + count))
    assert page.line(again).startswith(f"macc: {one.statistics.iqm.value:.3f} [")


def test_commands_train_the_seeds_that_are_there() -> None:
    settings = published([[1.0, 2.0]] * 2).settings
    assert publish.commands("macc", settings, [7, 8, 9]) == (
        "cczoo train macc --set steps=120000 --seeds 3"
    )
    assert publish.commands("macc", settings, [3, 7, 8]) == (
        "cczoo train macc --set seed=3 --set steps=120000 --seeds 1 && "
        "cczoo train macc --set steps=120000 --seeds 2"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--fresh", "2"], "name an agent"),
        (["macc", "--fresh", "0"], "at least 1"),
        (["macc", "--episodes", "1"], "at least 2"),
        (["mac"], "did you mean 'macc'"),
        (["macc"], "no finished training"),
        (["macc", "--choose", "2"], "no finished training"),
        (["macc", "--choose", "0"], "at least 1"),
        (["--choose", "2"], "name an agent"),
        (["macc", "--fresh", "1"], "macc.json: missing"),
        ([], "nothing is published there"),
    ],
)
def test_mistakes_are_one_clear_line(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert command.main([*given, "--out", str(tmp_path / "agents.md")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_curves_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing"):
        kept.read_curves(tmp_path, "macc")
    (tmp_path / "macc.parquet").write_bytes(b"PAR1 but no table")
    with pytest.raises(UserError, match="no Parquet"):
        kept.read_curves(tmp_path, "macc")
    kept.curves_of({7: []}).drop("validation").write_parquet(tmp_path / "macc.parquet")
    with pytest.raises(UserError, match="another version"):
        kept.read_curves(tmp_path, "macc")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Plays a few policies for a few steps; names of those that played."""
    rows = judge.PROBLEMS[WHERE]
    few = [next(row for row in rows if row[1] == kind) for kind in ("random", "constant", "script")]
    monkeypatch.setitem(judge.PROBLEMS, WHERE, few)
    real, played = judge.play, []

    def play(row: judge.Played, seeds: int, seed: int) -> judge.Result:
        played.append(row[0])
        return real(row, seeds, 5, seed)

    monkeypatch.setattr(judge, "play", play)
    return played


def test_tiny_trainings_are_published_seed_by_seed(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two seeds, then a fresh one, which is added; nobody plays twice."""
    trained, out = tmp_path / "macc", tmp_path / "agents.md"
    words = ["macc", "--trained", str(trained), "--out", str(out)]

    def train(seed: int, **changes: Any) -> None:
        params = agents.settings("macc", TINY | {"seed": seed} | changes)
        training.train("macc", params, trained / f"seed-{seed}", resume=True)

    train(7)
    assert command.main([*words, "--episodes", "3"]) == 2
    assert "at least two" in capsys.readouterr().err
    train(8)
    quick.clear()
    assert command.main([*words, "--episodes", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["macc"]
    assert found["seeds"] == [7, 8]
    assert found["costed"] == 0
    assert quick[-2:] == ["seed 7", "seed 8"]
    assert len(quick) == 5
    file = kept.file("macc").read(out.with_suffix(""))
    assert {one.played.name for one in file.seeds.values()} == {"seed 7", "seed 8"}
    assert file.seeds["7"].best_steps in (128, 256)
    assert file.statistics.beside.keys() == {"random", "constant", "script"}

    # A fresh seed is trained with the same settings, and isn't published by that.
    before = out.read_text(encoding="utf-8")
    code = command.main([*words, "--fresh", "1", "--json"])
    verdict = json.loads(capsys.readouterr().out)
    (row,) = verdict["fresh"]
    assert row["seed"] == 9
    assert code == (0 if row["inside"] else 1)
    assert verdict["interval"]["seeds"] == 2
    assert out.read_text(encoding="utf-8") == before
    assert trainings.read(trained / "seed-9").cost is not None

    quick.clear()
    assert command.main(words) == 0
    assert quick == ["seed 9"]
    capsys.readouterr()
    more = kept.file("macc").read(out.with_suffix(""))
    assert list(more.seeds) == ["7", "8", "9"]
    assert np.mean(more.seeds["9"].played.returns) == pytest.approx(row["return"])
    assert set(kept.read_curves(out.with_suffix(""), "macc")["seed"]) == {7, 8, 9}
    assert "3 seeds of 256 steps, 3 test episodes" in out.read_text(encoding="utf-8")

    # Which one to release is asked of other episodes, and changes nothing that is published.
    published_ = out.read_text(encoding="utf-8")
    assert command.main([*words, "--choose", "2", "--json"]) == 0
    chosen = json.loads(capsys.readouterr().out)
    assert {one["seed"] for one in chosen} == {7, 8, 9}
    assert chosen[0]["return"] == max(one["return"] for one in chosen)
    tested = np.mean(more.seeds[str(chosen[0]["seed"])].played.returns)
    assert chosen[0]["return"] != pytest.approx(tested)
    assert command.main([*words, "--choose", "2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"cczoo zoo release {trained}/seed-{chosen[0]['seed']}"
    assert out.read_text(encoding="utf-8") == published_

    # What the page was made of makes it again, without any training.
    text = out.read_text(encoding="utf-8")
    out.write_text("", encoding="utf-8")
    assert command.main(["--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == text
    capsys.readouterr()

    # Settings of their own, and steps to go, are no seed among the others.
    train(10, steps=128)
    assert command.main(words) == 2
    assert "trained with steps=128, the others with 256" in capsys.readouterr().err


def test_fresh_seeds_land_inside_or_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = published([[2.0, 2.2], [2.1, 2.3], [2.0, 2.4]])
    values = {10: 2.2, 11: 3.0}
    monkeypatch.setattr(fresh, "_trained", lambda *_: True)

    class Read:
        settings = one.settings

        def __init__(self, path: Path) -> None:
            self.seed = int(path.name.removeprefix("seed-"))

    def play(where: str, training: Read, episodes: int) -> Played:
        returns = [values[training.seed]] * episodes
        return Played(name="", kind="agent", returns=returns, mbps=1, rtt_ms=1)

    monkeypatch.setattr(trainings, "read", Read)
    monkeypatch.setattr(publish, "play", play)
    found = fresh.check(one, 2, tmp_path)
    assert found is not None
    assert [row["inside"] for row in found["fresh"]] == [True, False]
    words = fresh.lines(found)
    assert words[0].startswith("macc: by 3 seeds one more lands between ")
    assert words[1:] == ["seed 10: 2.2000, inside", "seed 11: 3.0000, outside"]


def test_test_episodes_are_none_that_training_or_validation_can_draw() -> None:
    """Both draw the environments' seed below 2**31 (`models.rl.runner`)."""
    assert publish.FIRST >= 1 << 31
    batch = judge.PROBLEMS[WHERE][0][2](2)
    batch.reset(publish.FIRST)
    batch.close()


def test_the_page_and_the_files_in_the_repository_are_of_one_making() -> None:
    folder = ROOT / "docs" / "agents"
    names = kept.agents(folder)
    there = (ROOT / "docs" / "agents.md").is_file()
    assert there == bool(names)
    found = {name: kept.file(name).read(folder) for name in names}
    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8") if there else ""
    assert text == (page.page(found, "agents") if there else "")
    for name, one in found.items():
        again = statistics(publish.returns(one.seeds), one.by_hand)
        assert again.iqm.value == pytest.approx(one.statistics.iqm.value)
        assert again.next_seed.low == pytest.approx(one.statistics.next_seed.low)
        curves = kept.read_curves(folder, name)
        assert set(map(str, curves["seed"])) == set(one.seeds)
        assert (folder / f"{name}.parquet").stat().st_size < 100_000
        assert all((folder / f"{name}-{drawing}.svg").is_file() for drawing in figures.DRAWINGS)
