"""What is observed of a control as it runs is what its log gives afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.netsim import events
from data.store import iter_connections
from models.decisions import macc, tcco
from models.decisions.simulated import Play, Plays, Senders, runs, sender_runs
from models.envs.tcco import TccoParams
from tests.models.decisions.test_of_logs import one_path, two_paths

pytestmark = pytest.mark.xdist_group("netsim")
STEPS = 150


@pytest.mark.parametrize("control", ["cubic", "bbr", "lia"])
def test_a_controls_log_gives_what_was_observed_of_it(control: str, tmp_path: Path) -> None:
    play = Play("run", "here", control, two_paths(np.random.default_rng(0)), 3)
    settings = tcco.Settings()
    [online] = runs([play], STEPS, settings)
    params = TccoParams(subflows=2, steps=STEPS)
    batch = Plays([play], params=params, threads=1, stagger=False, keep_log=True)
    batch.reset(0)
    for _ in range(STEPS):
        batch.step(np.zeros((1, 2), np.int64))
    network = batch.networks[0]
    events.write([events.tables(network, "log", samples=batch.samples(0))], tmp_path)
    [(row, logged)] = list(iter_connections(tmp_path))
    offline = tcco.of_log(row, logged, settings)
    assert offline.behaviour == online.behaviour == control
    for name in ("observation", "action", "change"):
        assert np.array_equal(getattr(offline, name), getattr(online, name)), name
    # The log doesn't know what the paths carry: what depends on it differs, the rules don't.
    rules = np.abs(online.reward) == 1.0
    assert rules.any()
    assert np.array_equal(offline.reward[rules], online.reward[rules])
    assert not np.array_equal(offline.reward, online.reward)
    assert len(np.unique(online.action)) > 2


def test_a_senders_log_gives_what_was_observed_of_it(tmp_path: Path) -> None:
    play = Play("run", "here", "cubic", one_path(np.random.default_rng(0)), 3)
    settings = macc.Settings()
    [online] = sender_runs([play], 40, settings)
    params = settings.params.model_copy(update={"senders": 1, "routers": (), "steps": 40})
    batch = Senders([play], params=params, threads=1, stagger=False, keep_log=True)
    batch.reset(0)
    for _ in range(40):
        batch.step(np.zeros((1, 1), np.int64))
    network = batch.networks[0]
    events.write([events.tables(network, "log", samples=batch.samples(0))], tmp_path)
    [(row, logged)] = list(iter_connections(tmp_path))
    offline = macc.of_log(row, logged, settings)
    for name in ("observation", "action", "change", "reward"):
        assert np.array_equal(getattr(offline, name), getattr(online, name)), name
    assert online.observation[:, 0, 0].min() > 0
