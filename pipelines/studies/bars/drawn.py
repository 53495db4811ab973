"""Scenarios that are drawn for the bars, of which no training has seen any, and changes to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from data.netsim.elements import Link
from data.netsim.scenario import Scenario
from models.envs.samplers import Sampler, mixed_paths, wireless
from pipelines.studies.bars.bench import Episode
from pipelines.studies.episodes import TEST_SEED

EACH = 3
"""Drawn scenarios of a seed, whose mean is the seed's value."""
LENGTHS = {"duration_s": 20.0, "warmup_s": 4.0}


def episodes(sampler: Sampler, seeds: int) -> list[Episode]:
    """`EACH` scenarios for each seed, one after the other, with the seed of their simulation."""
    return [
        (sampler(np.random.default_rng([TEST_SEED, seed, number])).model_copy(update=LENGTHS), seed)
        for seed in range(seeds)
        for number in range(EACH)
    ]


def changed(
    sampler: Sampler, rtt: float = 1.0, rate: float = 1.0, loss: float | None = None
) -> Sampler:
    """A sampler's scenarios with all delays and all rates times a factor, or another loss.

    Queues in packets grow with the rate, so that they are as long in time; receive windows grow
    with both.
    """

    def sample(rng: np.random.Generator) -> Scenario:
        return stretched(sampler(rng), rtt, rate, loss)

    return sample


def upper(sampler: Sampler, what: Callable[[Scenario], list[float]], most: float) -> Sampler:
    """A sampler's scenarios that lie in the upper half of its range: doubled, all are outside.

    Parameters
    ----------
    sampler : callable
    what : callable
        Takes a scenario, returns what has the range: `delays` or `rates`.
    most : float
        The range's upper end.
    """

    def sample(rng: np.random.Generator) -> Scenario:
        while True:
            spec = sampler(rng)
            if all(value > most / 2 for value in what(spec)):
                return spec

    return sample


def delays(spec: Scenario) -> list[float]:
    """Each path's base delay one way, ms: that of its way back, which never changes."""
    return [spec.links[path.back[0]].delay_ms for path in spec.flows[0].paths]


def rates(spec: Scenario) -> list[float]:
    """Each path's base rate, Mbps: the mean of a generated link, else the first of its steps."""
    return [_rate(spec.links[path.forward[0]]) for path in spec.flows[0].paths]


def _rate(link: Link) -> float:
    if link.generate is not None:
        return link.generate.mean_mbps
    return link.steps[0][1] if link.steps else 0.0


def stretched(
    spec: Scenario, rtt: float = 1.0, rate: float = 1.0, loss: float | None = None
) -> Scenario:
    """One scenario, changed as by `changed`; a loss replaces those that links have already."""
    links = {}
    for name, link in spec.links.items():
        new: dict[str, Any] = {"delay_ms": link.delay_ms * rtt}
        if link.delay_steps is not None:
            new["delay_steps"] = [(time, ms * rtt) for time, ms in link.delay_steps]
        if link.rate_mbps is not None:
            new["rate_mbps"] = link.rate_mbps * rate
        if link.steps is not None:
            new["steps"] = [(time, mbps * rate) for time, mbps in link.steps]
        if link.generate is not None:
            mean = link.generate.mean_mbps * rate
            new["generate"] = link.generate.model_copy(update={"mean_mbps": mean})
        if link.queue_packets is not None:
            new["queue_packets"] = round(link.queue_packets * rate)
        if loss is not None and link.queue_packets is not None and not name.endswith("back"):
            new["loss"] = loss
        links[name] = link.model_copy(update=new)
    flows = [
        flow.model_copy(update={"window_bytes": round(flow.window_bytes * rtt * rate)})
        for flow in spec.flows
    ]
    return spec.model_copy(update={"links": links, "flows": flows})


def three_paths(rng: np.random.Generator) -> Scenario:
    """`mixed_paths` with a third path, drawn as the others."""
    spec, other = mixed_paths(rng), mixed_paths(rng)
    links = {**spec.links, "three": other.links["one"], "three_back": other.links["one_back"]}
    flow = spec.flows[0]
    path = flow.paths[0].model_copy(update={"forward": ["three"], "back": ["three_back"]})
    window = flow.window_bytes + other.flows[0].window_bytes
    flow = flow.model_copy(update={"paths": [*flow.paths, path], "window_bytes": window})
    return spec.model_copy(update={"links": links, "flows": [flow]})


def class_of(target_ms: float, loss: float) -> Sampler:
    """Nuwa's `wireless` links with one T_d and one loss, all else as drawn."""

    def sample(rng: np.random.Generator) -> Scenario:
        spec = wireless(rng)
        cell = spec.links["cell"].model_copy(update={"loss": loss})
        flow = spec.flows[0].model_copy(update={"target_delay_ms": target_ms})
        return spec.model_copy(update={"links": {**spec.links, "cell": cell}, "flows": [flow]})

    return sample
