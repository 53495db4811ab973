"""What one policy of TCCO's is trained on: kinds of episodes, their ranges, and their subflows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from data.errors import UserError
from models.envs.samplers import NAMED, SUBFLOWS, served_paths, several_paths
from models.envs.tcco import TccoSettings, batch
from models.envs.tcco_scenarios import beside_tcp, one_bottleneck, steady_paths

pytestmark = pytest.mark.xdist_group("netsim")


def drawn(sampler, count=200):
    return [sampler(np.random.default_rng([7, i])) for i in range(count)]


def test_episodes_are_of_all_kinds_and_numbers_of_subflows() -> None:
    found = drawn(served_paths, 400)
    subflows = Counter(len(spec.flows[0].paths) for spec in found)
    assert set(subflows) == {1, 2, 3, 4, 5, 6, 7, 8} == set(range(1, SUBFLOWS["served_paths"] + 1))
    assert 0.75 < subflows[2] / len(found) < 0.87
    shared = [spec for spec in found if "core" in spec.links]
    beside = [spec for spec in found if len(spec.flows) == 2]
    assert all(0.08 < len(kind) / len(found) < 0.18 for kind in (shared, beside))
    assert all(spec.flows[0].cc is None for spec in found), "the agent's"


def test_steady_paths_are_like_the_papers() -> None:
    found = drawn(steady_paths)
    links = [spec.links["one"] for spec in found]
    assert 300 <= min(link.rate_mbps for link in links) < 320
    assert 580 < max(link.rate_mbps for link in links) <= 600
    losses = np.array([link.loss for link in links])
    assert 0.2 < (losses > 0).mean() < 0.47
    assert losses.max() <= 0.01
    assert all(1 <= low < high <= 5 for link in links for (_, low), (_, high) in [link.delay_steps])


def test_a_bottleneck_for_both_and_one_beside_tcp() -> None:
    for spec in drawn(one_bottleneck):
        core = spec.links["core"]
        assert 50 <= core.rate_mbps <= 1000
        assert 3 <= 2 * core.delay_ms <= 100
        product = core.rate_mbps * 1e3 * 2 * core.delay_ms / 12_000
        assert 10 <= core.queue_packets <= max(10, 3 * product + 1)
        assert all(path.forward[-1] == "core" for path in spec.flows[0].paths)
    neighbours = Counter(spec.flows[1].cc for spec in drawn(beside_tcp))
    assert set(neighbours) == {"cubic", "reno", "westwood", "bbr"}
    for spec in drawn(beside_tcp, 20):
        own, other = spec.flows
        assert other.paths == own.paths[:1]


def test_several_paths_together_are_no_faster_than_two() -> None:
    for spec in drawn(several_paths):
        rates = [spec.links[path.forward[0]].steps[0][1] for path in spec.flows[0].paths]
        assert sum(rates) <= 1000
        assert len(rates) != 2


def test_a_sampler_says_how_many_subflows_its_environments_have() -> None:
    made = batch(2, 1, {"sampler": "served_paths", "params": {"steps": 2}})
    assert made.params.subflows == 8
    assert made.params.steps == 2
    assert batch(1, 1, {"sampler": "served_paths"}).params.subflows == 8
    assert batch(1, 1, {"sampler": "mixed_paths"}).params.subflows == 2
    own = batch(1, 1, {"sampler": "served_paths", "params": {"subflows": 9}})
    assert own.params.subflows == 9
    assert set(SUBFLOWS) <= set(NAMED)
    valid = TccoSettings.parse({"sampler": "served_paths"}, "settings")
    assert TccoSettings.parse(valid, "settings") == valid
    with pytest.raises(UserError, match="subflow"):
        batch(1, 1, {"sampler": "served_paths", "params": {"subflow": 3}})
