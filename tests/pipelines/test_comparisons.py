"""Agents beside other ways to learn: what each is trained with, and what the page says of them."""

import json
from pathlib import Path

import pytest

from models.rl import agents
from pipelines.params import load
from pipelines.studies.comparisons import command, kept, page, play
from pipelines.studies.comparisons.groups import GROUPS, settings

ROOT = Path(__file__).parents[2]


def trained(*returns):
    return kept.Trained(returns=list(returns), mbps=10.0, rtt_ms=50.0, cpu_s=3.0, steps=[10, 20],
                        validation=[0.1, 0.2])  # fmt: skip


def entry(*seeds, own=False):
    named = {str(7 + i): one for i, one in enumerate(seeds)}
    return kept.Entry(settings={"steps": 20}, own_reward=own, seeds=named)


@pytest.fixture
def found():
    return kept.Compared(
        group="macc",
        episodes=2,
        entries={
            "macc": entry(trained(1.0, 2.0), trained(1.5, 2.5)),
            "macc-qmix": entry(trained(0.5, 1.5), trained(1.0, 2.0), trained(9.0, 9.0)),
            "macc-printed": entry(trained(3.0, 4.0), own=True),
        },
    )


def test_every_comparison_is_trained_with_its_agents_budget_and_its_own_changes():
    params = load(ROOT / "params.yaml").agents
    for group in GROUPS.values():
        for name in group.names:
            given = settings(group, name, params.of(group.agent))
            made = agents.settings(name, given).model_dump(by_alias=True)
            for key, value in agents.agent(name).preset.items():
                if key != "env":
                    assert made[key] == value, (name, key)
            assert group.sampler in (None, made["env"].get("sampler"))
    beside = {one for group in GROUPS.values() for one in group.beside}
    assert beside == {*agents.COMPARISONS}


def test_what_cannot_be_compared_is_trained_once():
    order = play._order(GROUPS["macc"], 2)
    assert order[:3] == [(7, "macc"), (7, "macc-independent"), (7, "macc-qmix")]
    assert order.count((8, "macc-qmix")) == 1
    assert [one for one in order if one[1] == "macc-printed"] == [(7, "macc-printed")]


def test_differences_are_paired_by_seed_and_those_of_another_reward_left_out(found):
    rows = {row["name"]: row for row in page.summary(found)}
    assert rows["macc"]["difference"] is None
    # Seed 9 of QMIX has no partner: the others are 0.5 below theirs in every episode.
    assert rows["macc-qmix"]["difference"]["value"] == pytest.approx(-0.5)
    assert rows["macc-qmix"]["improvement"]["value"] == 0
    assert rows["macc-qmix"]["seeds"] == 3
    assert rows["macc-printed"]["difference"] is None
    assert "own reward" in page.page({"macc": found}, "x")


def test_the_page_is_written_of_what_is_kept(found, tmp_path, capsys):
    out = tmp_path / "page.md"
    kept.file("macc").write(tmp_path / "page", found)
    assert command.main(["--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["macc"]] == [*found.entries]
    assert "](page/macc.svg)" in out.read_text(encoding="utf-8")
    assert "macc-qmix" in (tmp_path / "page" / "macc.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing is kept there"),
        (["maccc"], "did you mean 'macc'"),
        (["macc"], "no finished training: give --train"),
        (["macc", "--seeds", "0"], "--seeds: give a whole number of at least 1"),
    ],
)
def test_mistakes_are_said_in_a_line(words, said, tmp_path, capsys):
    given = [*words, "--out", str(tmp_path / "p.md"), "--trained", str(tmp_path)]
    assert command.main(given) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
