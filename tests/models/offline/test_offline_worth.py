"""Estimates from logs, held against a problem of which the answer is known."""

import numpy as np
import pytest
from known_worth import BEHAVIOUR, GAMMA, POLICY, Known, over, runs, sequences, worth
from offline_tables import ABOUT, SMALL

from data.decisions import files
from models.offline import evaluation
from models.offline.aside import Aside
from models.offline.params import Evaluation
from models.offline.source import Source
from models.offline.support import Support
from models.offline.weighting import Sequences, discounted, resamples
from models.offline.worth import estimate, interval, untrusted, verdict

SETTINGS = Evaluation(
    **{**SMALL, "batch": 32, "context": 2}, subflows=1, gamma=GAMMA, updates=200, rate=1e-2,
    tau=0.1, held_out=0.3, fits=1, horizon=3, spacing=3, resamples=200, least_effective=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "known.parquet"
    files.write(path, ABOUT, runs(100))
    return path


@pytest.fixture(scope="module")
def found(logs):
    """All figures of a policy, by networks and by weights of odds that are known."""
    policy, behaviour = (Known("policy", None, table=t) for t in (POLICY, BEHAVIOUR))
    source = Source(logs, SETTINGS)
    aside = Aside.of(source, SETTINGS)
    fits = [evaluation.fitted(policy, logs, SETTINGS, None)]
    known = evaluation.fitted(behaviour, logs, SETTINGS, None)
    support = Support.of(source.runs(False), 5)
    return (
        fits[0],
        aside,
        estimate(policy, fits, aside.taken(aside.odds(behaviour)), known, aside, support),
    )


def test_fitted_q_evaluation_finds_what_each_state_is_worth(found):
    fit, aside, _ = found
    run = aside.runs[0]
    fast = run.observation[:, 0, 0] > 1e8
    got = fit.worth(run, aside.source, np.arange(run.steps))
    assert [got[~fast].mean(), got[fast].mean()] == pytest.approx(worth(POLICY), abs=0.03)


def test_the_figures_are_those_of_logs_and_weights(found):
    _, aside, figures = found
    fast = np.concatenate([
        run.observation[rows, 0, 0] > 1e8
        for run, rows in zip(aside.runs, aside.steps, strict=True)
    ]).astype(int)  # fmt: skip
    assert figures["logged"]["mean"] == pytest.approx(
        over(BEHAVIOUR, aside.length)[fast].mean(), abs=0.03
    )
    assert figures["fqe"]["mean"] == pytest.approx(worth(POLICY)[fast].mean(), abs=0.03)
    assert figures["wis"]["mean"] == pytest.approx(over(POLICY, 3)[fast].mean(), abs=0.05)
    gain = (worth(POLICY) - worth(BEHAVIOUR))[fast].mean()
    assert figures["fqe_gain"]["mean"] == pytest.approx(gain, abs=0.03)
    assert figures["fqe_gain"]["low"] < figures["fqe_gain"]["mean"] < figures["fqe_gain"]["high"]
    assert 20 < figures["effective"] < figures["starts"]
    assert figures["off"]["mean"] == pytest.approx(0, abs=0.03)
    assert figures["refused"] == {}


def test_only_a_gain_above_0_by_interval_beats_what_was_logged():
    above, around = ({"mean": 0.2, "low": low, "high": 0.4} for low in (0.1, -0.1))
    below = {"mean": -0.2, "low": -0.3, "high": -0.1}
    asked = [(above, None), (above, around), (around, above), (above, below), (None, above)]
    given = {"refused": {"fqe": "nothing to rest on"}}
    given["off"] = {"mean": -0.05, "low": -0.1, "high": 0.0}
    found = [verdict({**given, "fqe_gain": fqe, "wis_gain": wis}) for fqe, wis in asked]
    assert [one["beats"] for one in found] == [True, True, False, False, False]
    assert "+0.2000 (-0.1000 to +0.4000): the interval isn't above 0" in found[2]["reason"]
    assert "importance weights at most -0.1000" in found[3]["reason"]
    assert found[4]["reason"] == "nothing to rest on"
    given["off"]["mean"] = 0.15
    off = verdict({**given, "fqe_gain": above, "wis_gain": None})
    assert not off["beats"]
    assert off["reason"].endswith("off by +0.1500 for the very controls that are logged")


def test_what_has_too_little_to_rest_on_is_refused():
    held = {"outside": 0.05, "rare_action": 0.3, "where": None}
    found = {"effective": 19.9, "starts": 300, "reach": 2, "coverage": held, "horizon": 3}
    refused = untrusted(found, SETTINGS)
    assert refused["wis"] == (
        "weights leave 19.9 of 300 sequences of 3 decisions: an estimate takes 20, which are left "
        "for 2"
    )
    assert refused["fqe"].startswith("30 % of its decisions have no support, more than 10 %")
    fine = {**found, "effective": 20.0, "coverage": {**held, "rare_action": 0.1}}
    assert untrusted(fine, SETTINGS) == {}


def test_weights_find_what_it_is_worth():
    first, ratios, rewards = sequences(20_000, 3)
    found = Sequences(ratios, rewards, np.arange(len(first)) // 20)
    got = interval(found.estimates(GAMMA, resamples(1000, 100)))
    true = over(POLICY, 3)[first].mean()
    assert got["low"] < true < got["high"]
    assert got["mean"] == pytest.approx(true, abs=0.01)
    assert got["high"] - got["low"] < 0.03


def test_who_acts_alike_gets_what_was_logged():
    """By hand: weights of 1 leave the logged means."""
    rewards = np.array([[1.0, 0.0], [0.0, 4.0], [2.0, 2.0]])
    same = Sequences(np.ones((3, 2)), rewards, np.array([0, 1, 1]))
    counts = resamples(2, 10)
    assert same.effective().tolist() == [3.0, 3.0]
    assert same.estimates(0.5, counts)[0] == pytest.approx(discounted(rewards, 0.5).mean())
    never = Sequences(np.array([[2.0, 0.0], [0.0, 5.0], [1.0, 1.0]]), rewards, np.arange(3))
    # First decision: weights 2, 0, 1; second: 0, 0, 1.
    assert never.estimates(0.5, resamples(3, 10))[0] == pytest.approx((4 / 3 + 0.5 * 2) / 1.5)
    assert never.effective() == pytest.approx([9 / 5, 1.0])


def test_an_interval_is_of_the_resamples():
    found = interval(np.array([5.0, *np.arange(101.0)]))
    assert found == {"mean": 5.0, "low": 2.5, "high": 97.5}
