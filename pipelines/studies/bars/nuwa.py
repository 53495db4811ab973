"""Nuwa-RL's bars."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from models.envs.nuwa import NuwaBatch
from models.envs.samplers import Sampler
from models.envs.scripted import nuwa_hold, nuwa_thresholds, with_k
from pipelines.studies.bars.bench import Bench, Floats, over
from pipelines.studies.bars.drawn import class_of
from pipelines.studies.bars.judge import Bar
from pipelines.studies.episodes import greedy

if TYPE_CHECKING:
    from models.policies.policy import Policy

TARGETS_MS = (15.0, 50.0, 150.0)
LOSSES = (0.0, 0.0005)
"""Both of the training's, half of the links each; with T_d they make a class of conditions."""
GAINS = tuple(range(1, 10))
STEPS = 800
"""Decisions of an episode: 80 s, as in training."""
DATA, WAIT = "transferred_mb", "queue_delay_ms"
_TABLE_1 = {"flows__0__target_delay_ms": 50}
_SHALLOW = {
    "flows__0__target_delay_ms": 20,
    "links__cell__generate": {"kind": "cellular", "mean_mbps": 60, "duration_s": 80},
    "links__cell__queue_packets": 200,
}
"""60 Mbps on the average, 40 ms of queue."""


def bars(policy: Policy) -> list[Bar]:
    """The bars, all of them for any policy."""
    found = []
    for ms in TARGETS_MS:
        shown = f"T_d {ms:g} ms: return less"
        found.append(Bar("rule", f"{shown} the two-threshold rule's", "", 0.0,
                         partial(_over_rule, ms), sure=True))  # fmt: skip
        for loss in LOSSES:
            where = "with loss" if loss else "without loss"
            found.append(Bar("fixed-k", f"{shown} the best fixed k's, {where}", "", 0.0,
                             partial(_over_fixed, ms, loss), sure=True))  # fmt: skip
    table, shallow = partial(_ratio, _TABLE_1), partial(_ratio, _SHALLOW)
    link, short = "Table I's link, T_d 50 ms:", "60 Mbps with a queue of 40 ms, T_d 20 ms:"
    return [
        *found,
        Bar("nuwa-table1", f"{link} data over CUBIC's", "", 0.99, partial(table, DATA, "cubic")),
        Bar("nuwa-table1", f"{link} queueing delay over CUBIC's", "", 0.30,
            partial(table, WAIT, "cubic"), at_least=False),
        Bar("nuwa-table1", f"{link} data over BBR's", "", 1.03, partial(table, DATA, "bbr")),
        Bar("nuwa-table1", f"{link} queueing delay over BBR's", "", 0.60,
            partial(table, WAIT, "bbr"), at_least=False),
        Bar("shallow", f"{short} data over CUBIC's", "", 1.04, partial(shallow, DATA, "cubic")),
        Bar("shallow", f"{short} queueing delay over CUBIC's", "", 1.0,
            partial(shallow, WAIT, "cubic"), at_least=False),
    ]  # fmt: skip


def _batch(bench: Bench, sampler: Sampler) -> NuwaBatch:
    params = {**bench.player.policy.params, "steps": STEPS}
    return NuwaBatch(bench.seeds, sampler, params=params, threads=1, stagger=False)


def _own(ms: float, loss: float, bench: Bench) -> Floats:
    facts = ["nuwa", ms, loss, STEPS, bench.identity]
    return bench.rewards(
        facts, lambda: _batch(bench, class_of(ms, loss)), partial(greedy, bench.player)
    )


def _facts(ms: float, loss: float, what: Any, bench: Bench) -> list[Any]:
    return ["nuwa", ms, loss, STEPS, what, dict(bench.player.policy.params)]


def _rule(ms: float, loss: float, bench: Bench) -> Floats:
    facts = _facts(ms, loss, "thresholds 0.2", bench)
    return bench.rewards(
        facts, lambda: _batch(bench, class_of(ms, loss)), lambda batch: nuwa_thresholds(0.2)
    )


def _fixed(ms: float, loss: float, k: int, bench: Bench) -> Floats:
    facts = _facts(ms, loss, k, bench)
    return bench.rewards(
        facts, lambda: _batch(bench, with_k(class_of(ms, loss), k)), lambda batch: nuwa_hold
    )


def _over_rule(ms: float, bench: Bench) -> Floats:
    gained = [_own(ms, loss, bench) - _rule(ms, loss, bench) for loss in LOSSES]
    result: Floats = np.mean(gained, axis=0)
    return result


def _over_fixed(ms: float, loss: float, bench: Bench) -> Floats:
    found = [_fixed(ms, loss, k, bench) for k in GAINS]
    best = found[int(np.argmax([one.mean() for one in found]))]
    return _own(ms, loss, bench) - best


def _ratio(settings: dict[str, Any], metric: str, other: str, bench: Bench) -> Floats:
    there = bench.named("nuwa-table1", **settings)
    return over(bench.values(there, metric), bench.values(there, metric, other))
