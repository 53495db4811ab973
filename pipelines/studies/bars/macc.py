"""MA-CC's bars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from data.netsim.scenario import Scenario
from models.envs.macc import MaccBatch
from models.envs.macc_scenarios import greedy_neighbours
from pipelines.studies.bars.bench import Bench, Floats
from pipelines.studies.bars.judge import Bar
from pipelines.studies.episodes import Act, greedy

if TYPE_CHECKING:
    from models.envs.batching import Batching
    from models.policies.policy import Policy

OWN, NEVER, CODEL = "its own routers", "routers that never drop", "CoDel"
_SETTLED = {"warmup_s": 20}


def bars(policy: Policy) -> list[Bar]:
    """The bars that a policy can be held to: those on routers need some."""
    table, settled = "three senders, 30 Mbps, 280 ms:", "after the first 20 s:"
    found = [
        Bar("macc-fig4", f"{table} goodput", "Mbps", 28.7, partial(_fig4, "goodput_mbps", {})),
        Bar("macc-fig4", f"{table} RTT", "ms", 285.0, partial(_fig4, "rtt_ms", {}), at_least=False),
        Bar("macc-fig4", f"{settled} goodput", "Mbps", 28.7,
            partial(_fig4, "goodput_mbps", _SETTLED)),
        Bar("macc-fig4", f"{settled} RTT", "ms", 285.0, partial(_fig4, "rtt_ms", _SETTLED),
            at_least=False),
        Bar("macc-fig4", f"{settled} the queue's MAD", "packets", 2.0,
            partial(_fig4, "queue_mad", _SETTLED), at_least=False),
        Bar("macc-fig4", f"{settled} the windows' MAD", "segments", 2.0,
            partial(_fig4, "cwnd_mad", _SETTLED), at_least=False),
    ]  # fmt: skip
    if 1 in policy.kinds and 0 in policy.kinds:
        where = "where routers matter (greedy_neighbours): return less that of its senders"
        found += [
            Bar("routers", f"{where} before {other}", "", 0.0, partial(_over, other), sure=True)
            for other in (NEVER, CODEL)
        ]
    return found


def _fig4(metric: str, settings: Mapping[str, Any], bench: Bench) -> Floats:
    return bench.values(bench.named("macc-fig4", "droptail", **settings), metric)


def _over(other: str, bench: Bench) -> Floats:
    return _return(OWN, bench) - _return(other, bench)


def _return(routers: str, bench: Bench) -> Floats:
    """The team's mean reward of a step; routers that don't act are paid all the same."""
    queue = "codel" if routers == CODEL else "agent"

    def sampler(rng: np.random.Generator) -> Scenario:
        spec = greedy_neighbours(rng)
        core = spec.links["core"].model_copy(update={"queue": queue})
        return spec.model_copy(update={"links": {**spec.links, "core": core}})

    def make() -> Batching:
        params = {**bench.player.policy.params, "watch_other_queues": queue != "agent"}
        return MaccBatch(bench.seeds, sampler, params=params, threads=1, stagger=False)

    def act(batch: Batching) -> Act:
        own = greedy(bench.player, batch)
        return own if routers == OWN else partial(_never_dropping, own)

    return bench.rewards(["macc", routers, bench.identity], make, act)


def _never_dropping(own: Act, batch: Any) -> Any:
    actions = own(batch)
    actions[:, batch.kinds == 1] = 0
    return actions
