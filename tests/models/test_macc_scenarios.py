"""Scenarios for MA-CC's routers hold what they say, and a step without packets does its work."""

from __future__ import annotations

import numpy as np
import pytest

from data.netsim.scenario import Scenario
from features import macc
from models.envs.macc import MaccBatch, MaccParams
from models.envs.macc_scenarios import greedy_neighbours, many_senders
from models.envs.samplers import Sampler, named

pytestmark = pytest.mark.xdist_group("netsim")


def drawn(sampler: Sampler, count: int = 300) -> list[Scenario]:
    return [sampler(np.random.default_rng(i)) for i in range(count)]


@pytest.mark.parametrize(
    ("sampler", "counts"), [(greedy_neighbours, {1, 2, 3}), (many_senders, {4, 5, 6, 7, 8})]
)
def test_the_dumbbells_hold_what_they_say(sampler: Sampler, counts: set[int]) -> None:
    specs = drawn(sampler)
    others = [{flow.name: flow for flow in spec.flows} for spec in specs]
    assert {flows.pop("sender").count for flows in others} == counts
    for name, chance in (("cubic", 0.4), ("bbr", 0.3), ("short", 0.4)):
        there = [flows[name] for flows in others if name in flows]
        assert len(there) / len(specs) == pytest.approx(chance, abs=0.09), name
        assert {flow.cc for flow in there} == {"cubic" if name == "short" else name}
        sizes = [flow.size_bytes for flow in there]
        if name == "short":
            assert all(0.5e6 <= size <= 3e6 for size in sizes if size)
            assert {(flow.count, flow.start_gap_s) for flow in there} == {(12, 5.0)}
        else:
            assert {flow.count for flow in there} == {1, 2}
        assert all((size is not None) == (name == "short") for size in sizes)
    for spec in specs:
        (udp,) = spec.sources
        assert 20 <= udp.rate_mbps <= 50
        assert udp.on_s is not None
        assert 1 <= udp.on_s <= 2.5
        assert 3 <= udp.off_s <= 6
        core, back = spec.links["core"], spec.links["core_back"]
        assert (core.queue, back.queue) == ("agent", "agent")
        assert (core.rate_mbps, core.delay_ms, core.loss) == (30, 100, 0.0003)
        assert core.queue_packets is not None
        assert 750 <= core.queue_packets <= 2000


def test_senders_and_routers_of_every_dumbbell_are_run_by_agents() -> None:
    for name, senders in (("greedy_neighbours", 3), ("many_senders", 8)):
        batch = MaccBatch(12, named(name), params=MaccParams(senders=senders, steps=3))
        batch.reset(0)
        counts = batch.mask[:, :senders].sum(axis=1)
        assert [spec.flows[0].count for spec in (n.scenario for n in batch.networks)] == list(
            counts
        )
        assert batch.mask[:, senders:].all()


def test_one_step_without_packets_empties_what_a_burst_left_and_keeps_the_link_busy() -> None:
    batch = MaccBatch(16, greedy_neighbours, stagger=False)
    batch.reset(0)
    router, served = batch.params.senders, []
    for _ in range(60):
        before = batch.values[:, router, macc.QUEUE].copy()
        actions = np.full(batch.actions.shape, 2)
        actions[:, router:] = 0
        actions[:, router] = before > 300
        batch.step(actions)
        after = batch.values[:, router]
        dropped = actions[:, router] == 1
        # 500 packets of 1500 bytes are 0.2 s of 30 Mbps; of smaller ones there are more.
        assert (after[dropped, macc.QUEUE] <= np.maximum(0, before[dropped] - 490)).all()
        served += after[dropped, macc.DEQUEUED].tolist()
    assert len(served) > 30
    assert min(served) > 0.6 * 2500
