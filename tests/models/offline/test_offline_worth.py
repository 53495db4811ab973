"""Estimates from logs, held against a problem of which the answer is known."""

import numpy as np
import pytest
from known_worth import BEHAVIOUR, GAMMA, POLICY, Known, over, runs, sequences, worth
from offline_tables import ABOUT, SMALL

from data.decisions import files
from models.offline import evaluation
from models.offline.params import Evaluation
from models.offline.source import Source
from models.offline.support import Support
from models.offline.weighting import Sequences, discounted, resamples
from models.offline.worth import Aside, estimate, interval

SETTINGS = Evaluation(
    **{**SMALL, "batch": 32, "context": 2}, subflows=1, gamma=GAMMA, updates=300, rate=1e-2,
    tau=0.1, held_out=0.3, fits=1, horizon=3, spacing=3, resamples=200,
)  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "known.parquet"
    files.write(path, ABOUT, runs(120))
    return path


@pytest.fixture(scope="module")
def found(logs):
    """All figures of a policy, by networks and by weights of odds that are known."""
    policy, behaviour = (Known("policy", None, table=t) for t in (POLICY, BEHAVIOUR))
    source = Source(logs, SETTINGS)
    aside = Aside.of(source, SETTINGS)
    fits = [evaluation.fitted(policy, logs, SETTINGS, None)]
    support = Support.of(source.runs(False), 5)
    return fits[0], aside, estimate(policy, fits, aside.taken(behaviour), aside, support)


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
    assert figures["fqe_gain"]["low"] < figures["fqe"]["mean"] - figures["logged"]["mean"]
    assert 50 < figures["effective"] < figures["starts"]
    assert not figures["verdict"]["beats"], "the policy is worse by construction"


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
