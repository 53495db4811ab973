"""Offline agents beside who made the logs: what is kept, what is said of it, and going on."""

import json

import numpy as np
import polars as pl
import pytest

from data.decisions import files
from data.decisions.run import Run
from data.decisions.schema import About
from data.errors import UserError
from features import tcco
from features.spec import schema_hash
from pipelines.league.families import FAMILIES
from pipelines.reporting import offline as section
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.studies.offline import (
    command,
    kept,
    learn,
    lines,
    page,
    results,
    statistics,
    tune,
    words,
)
from pipelines.studies.offline.statistics import Estimate

SEEDS = (7, 8, 9)
POWER = {"bc": 0.4, "cql": 0.6, "vegas": 0.5, "wvegas": 0.55, "cubic": 0.7, "tcco": 0.58}
COUPLED = ("wvegas",)


def runs():
    """Runs whose power is known but for a little that all have in common, and a seed's own."""
    rows = []
    for family, one in FAMILIES.items():
        for number in range(3):
            common = 0.02 * number
            for player, power in POWER.items():
                if player in COUPLED and one.standing != "multipath":
                    continue
                for seed in SEEDS if player in ("bc", "cql") else (None,):
                    own = 0.001 * (seed - 8) if seed else 0.0
                    rows.append({"player": player, "seed": seed, "family": family,
                                 "scenario": f"{family}-{number:02d}", "goodput": 0.5,
                                 "rtt_ratio": 1.5, "power": power + common + own})  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"seed": pl.Int64}, infer_schema_length=None)


def tuned(*values):
    return kept.Tuned(steps=[10 * (i + 1) for i in range(len(values))], validation=list(values))


@pytest.fixture
def folder(tmp_path):
    """A folder of all that is kept."""
    found = tmp_path / "docs" / "offline-agents"
    cost = kept.Cost(cpu_s=3.0, peak_mb=900.0)
    rewards = {"vegas": 0.2, "cubic": -1.0}
    learned = kept.Learned(
        decisions=1000, runs=10, share=0.1, updates=6, batch=64, context=8, seeds=list(SEEDS),
        costs={name: [cost] * 3 for name in ("bc", "cql")},
        rewards={"single-path": rewards, "multipath": rewards | {"wvegas": 0.3}},
    )  # fmt: skip
    kept.LEARNED.write(found, learned)
    returns = {"bc": [[0.1, 0.2]] * 3, "cql": [[0.3, 0.4]] * 3, "wvegas": [[0.0, 0.1]],
               "tcco": [[0.5, 0.6]]}  # fmt: skip
    kept.PLAYED.write(found, {"every": 6, "sampler": "mixed_paths", "returns": returns})
    scratch = tuned(0.0, 1.0, 2.0, 2.0)
    curves = {"scratch": {str(seed): scratch for seed in SEEDS},
              "bc": {"7": tuned(0.5, 1.0, 1.0, 1.5), "8": tuned(0.1, 2.0), "9": tuned(2.0)},
              "cql": {str(seed): tuned(2.1) for seed in SEEDS}}  # fmt: skip
    kept.TUNING.write(found, {"steps": 40, "every": 10, "curves": curves})
    runs().write_parquet(found / kept.RUNS)
    return found


def test_what_is_said_follows_from_the_intervals():
    more, less, none = (Estimate(value=v, low=v - 0.1, high=v + 0.1) for v in (0.2, -0.2, 0.05))
    said = words.verdict("cql", {"Vegas": less, "Reno": more, "CUBIC": none})
    assert said.startswith(
        "Discrete CQL beats Reno (+0.200 [+0.100, +0.300]), loses to Vegas (-0.2"
    )
    assert "and can't be told apart from CUBIC (+0.050 [" in said
    every = {"bc": less, "cql": less, "iql": more, "ensemble": none}
    assert words.summary("Vegas", every) == (
        "Of 4 agents that learned from logs alone, behaviour cloning and discrete CQL lose to "
        "Vegas; IQL beats it; the pessimistic ensemble can't be told apart from it."
    )
    assert words.summary("Vegas", {"bc": less}) == "Behaviour cloning loses to Vegas."


def test_a_difference_is_of_pairs_and_its_interval_of_whole_seeds():
    rng = np.random.default_rng(1)
    scenarios = rng.normal(0.0, 5.0, (1, 9, 2))
    seeds = np.array([0.1, 0.2, 0.3])[:, None, None]
    one = statistics.difference(scenarios + seeds, scenarios)
    # What scenarios differ by takes no part: only the seeds are uncertain.
    assert one.value == pytest.approx(0.2)
    assert 0.1 <= one.low < 0.2 < one.high <= 0.3
    assert statistics.score(scenarios).high - statistics.score(scenarios).low > 1
    assert (one.sign, statistics.difference(scenarios, scenarios).sign) == (1, 0)


def test_the_best_logged_control_is_the_logs_choice_not_hindsights(folder):
    study = results.read(folder)
    assert study.best == {"single-path": "vegas", "multipath": "wvegas"}
    assert study.hindsight == {"single-path": "cubic", "multipath": "cubic"}
    cql, logged = study.row("cql"), study.row(lines.LOGGED)
    assert cql.to_clone.value == pytest.approx(0.2)
    assert study.row("bc").to_clone is None
    assert logged.to_logged is None
    # Five families have Vegas, three wVegas: the middle half of the differences.
    assert 0.05 < cql.to_logged.value < 0.1
    assert cql.to_online.sign == 1
    assert "behaviour cloning loses to the best logged control" in study.sentences[0]
    assert "discrete CQL beats it" in study.sentences[0]


def test_steps_are_counted_until_the_return_from_nothing(folder):
    bc, cql = results.read(folder).ratios
    # From nothing the last three are 5/3 in the mean, which is reached at step 30 of 40.
    assert (bc.missed, cql.missed) == (1, 0)
    assert bc.own.value == pytest.approx((40 / 30 * 20 / 30 * 10 / 30) ** (1 / 3))
    assert bc.whole.value == pytest.approx((1 * 20 / 40 * 10 / 40) ** (1 / 3))
    assert (cql.own.value, cql.whole.high) == pytest.approx((1 / 3, 1 / 4))
    assert page.sentence(results.read(folder)) == (
        "At most a half, by the whole interval: of all steps from nothing with discrete CQL, of "
        "the steps until then with discrete CQL."
    )


def test_an_online_training_that_was_cut_off_counts_for_nothing(folder):
    tuning = kept.TUNING.read(folder)
    cut = {**tuning.curves, "cql": {str(seed): tuned(0.1) for seed in SEEDS}}
    kept.TUNING.write(folder, {"steps": 40, "every": 10, "curves": cut})
    with pytest.raises(UserError, match="isn't whole"):
        print(results.read(folder).ratios)


def test_page_report_and_programs_say_the_same(folder, tmp_path, capsys):
    out = folder.with_suffix(".md")
    assert command.main(["--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    text = out.read_text(encoding="utf-8")
    assert len(told["says"]) == 3
    html = section.agents(Inputs(tmp_path)) + section.tuning(Inputs(tmp_path))
    for sentence in told["says"]:
        assert f"- {sentence}\n" in text
    assert "| discrete CQL: Q learning" in text
    assert html.count("<svg") == 2
    assert (
        "control (vegas on one path, wvegas on several paths (MPTCP)); discrete CQL beats it"
        in html
    )
    assert (folder / "scores.svg").is_file()
    (folder / kept.TUNING.name).unlink()
    assert command.main(["--out", str(out)]) == 0
    assert "Beginning online" not in out.read_text(encoding="utf-8")
    with pytest.raises(MissingInput):
        section.tuning(Inputs(tmp_path))
    with pytest.raises(MissingInput):
        section.agents(Inputs(tmp_path / "nowhere"))


@pytest.fixture(scope="module")
def decisions(tmp_path_factory):
    """Two controls in all families, one of which isn't in the tests' split alone."""
    path = tmp_path_factory.mktemp("decisions")
    rng = np.random.default_rng(1)
    about = About(
        agent="tcco", observation=tuple(one.name for one in tcco.FEATURES),
        units=tuple(one.unit for one in tcco.FEATURES), schema_hash=schema_hash(tcco.FEATURES, {}),
        interval_us=20_000, actions=(-2.0, -1.0, 0.0, 1.0, 2.0), change_unit="unit of delta",
    )  # fmt: skip
    for control, reward in (("reno", 0.5), ("vegas", 1.0)):
        for split, worth in (("train", reward), ("validation", reward), ("test", -9 * reward)):
            made = []
            for number, family in enumerate(FAMILIES):
                seen = rng.uniform(1, 1e5, (96, 1, len(tcco.FEATURES))).astype(np.float32)
                action = rng.integers(0, 5, (96, 1)).astype(np.int8)
                paid = np.full((96, 1), worth, np.float32)
                made.append(Run(f"{control}/{split}/{number}", control, f"{family}-000.18", seen,
                                action, (action - 2).astype(np.float32), paid))  # fmt: skip
            place = path / f"behaviour={control}" / f"split={split}"
            files.write(place / "all.parquet", about, iter(made))
    return path


def test_what_is_learned_is_kept_and_not_learned_again(decisions, tmp_path, capsys):
    given = ["learn", "--decisions", str(decisions), "--seeds", "2", "--only", "bc",
             "--updates", "2", "--trained", str(tmp_path / "trained"),
             "--out", str(tmp_path / "page.md")]  # fmt: skip
    assert command.main(given) == 0
    first = kept.LEARNED.read(tmp_path / "page")
    assert (first.seeds, first.runs, len(first.costs["bc"])) == ([7, 8], 48, 2)
    assert first.rewards["multipath"] == pytest.approx({"reno": 0.5, "vegas": 1.0})
    assert first.costs["bc"][0].peak_mb > 0
    assert command.main(given) == 0
    assert kept.LEARNED.read(tmp_path / "page") == first
    assert "peak of memory" in capsys.readouterr().err
    assert command.main([*given, "--updates", "3"]) == 2
    assert "a training with other settings" in capsys.readouterr().err


def test_online_trainings_end_when_they_did_as_well_and_are_gone_on_with(
    decisions, tmp_path, monkeypatch
):
    cost = learn.learned(["bc"], 1, 2, decisions, tmp_path / "offline").costs
    assert len(cost["bc"]) == 1
    begun, goes = [], {None: [1.0, 2.0, 3.0], "bc": [1.0, 2.5, 9.0]}

    def trained(name, params, out, *, resume, watch, stop, begin):
        begun.append(begin)
        curve = []
        for number, value in enumerate(goes["bc" if begin else None], 1):
            curve.append({"steps": 10 * number, "validation": value * kept.EPISODE})
            watch(tune.training.Progress(10 * number, 30, None, 1.0, 1.0, curve[-1]))
            if stop():
                break
        (out / "checkpoint-000000030").mkdir(parents=True)
        (out / "curve.json").write_text(json.dumps(curve))

    monkeypatch.setattr(tune.training, "train", trained)
    folders = {"bc": {7: tmp_path / "offline" / "bc" / "seed-7"}}
    found = tune.tuned(folders, tmp_path / "tuned", 30, 10)
    assert found.curves["bc"]["7"].validation == [1.0, 2.5]
    assert begun == [None, folders["bc"][7]]
    assert tune.tuned(folders, tmp_path / "tuned", 30, 10) == found
    assert len(begun) == 2
    both = [tune.settings(one, 7, 30, 10, {**_sizes(), "subflows": 3})
            for one in (None, folders["bc"][7])]  # fmt: skip
    assert [one.warmup for one in both] == [tune.FROM_NOTHING["warmup"], 0]
    assert both[0].env == both[1].env


def _sizes():
    from models.offline.params import Offline

    return {key: getattr(Offline(), key) for key in tune._SIZES}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "missing: make it with `python -m pipelines.studies.offline.command play`"),
        (["lern"], "did you mean 'learn'"),
        (["learn", "--only", "bcq"], "unknown method 'bcq'"),
        (["learn", "--seeds", "0"], "--seeds: give a whole number of at least 1"),
        (["learn", "--decisions", "nowhere"], "no Parquet file of decisions"),
        (["play"], "learned.json: missing"),
    ],
)
def test_mistakes_are_told_in_a_line(given, told, tmp_path, capsys):
    assert command.main([*given, "--out", str(tmp_path / "p.md")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
