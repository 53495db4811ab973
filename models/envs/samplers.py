"""Scenarios to train on: a sampler makes one per episode from a random generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from data.errors import UserError, unknown_name
from data.netsim import capacity, scenario
from data.netsim.scenario import Scenario
from data.netsim.wireless import KINDS
from models.envs.macc_scenarios import greedy_neighbours, many_senders
from models.envs.tcco_scenarios import (
    beside_tcp,
    log_uniform,
    one_bottleneck,
    steady_paths,
)

Sampler = Callable[[np.random.Generator], Scenario]

_PACKET = 1500
_NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SUBFLOWS = {"served_paths": len(_NAMES)}
"""Sampler of TCCO's -> most subflows of an episode, where that isn't 2."""
_SLOWEST_MBPS, _FASTEST_MBPS = 3.0, 150.0
"""Mean rates of `wireless` and `measured` links (ours)."""
SPLITS = ("measured:", "validation:", "held-out:")
"""What measured traces are named by, with their directory after it: those to train on, those that
choose a network, and those that judge it. In the order of `data.netsim.capacity.split`."""
TRAINING, VALIDATION, HELD_OUT = range(len(SPLITS))
"""Their places."""


def fixed(name: str, label: str = "", settings: dict[str, Any] | None = None) -> Sampler:
    """A named scenario, the same in every episode but for the simulation's seed.

    Raises
    ------
    UserError
        For an unknown scenario, variant or setting.
    """
    variants = scenario.load(name, settings)
    if label not in variants:
        raise unknown_name("variant", label, variants)
    spec = variants[label]
    return lambda rng: spec


def alternating(rng: np.random.Generator) -> Scenario:
    """TCCO's own test (tcco.txt section II.C, Fig. 3, Fig. 8a), with periods and order drawn.

    As in the scenario ``tcco-fig9a`` both paths have 400 and 500 Mbps in turns, together, since
    Fig. 3's total alternates, 3 and 5 ms of delay in one direction, each path by itself, and
    200 packets of queue.
    """
    rates, period = tuple(rng.permutation([400.0, 500.0])), float(rng.uniform(1.0, 4.0))
    return _side_by_side(
        [
            {
                "rates": rates,
                "delays": tuple(rng.permutation([3.0, 5.0])),
                "period_s": period,
                "delay_period_s": float(rng.uniform(1.0, 4.0)),
                "queue": 200,
                "loss": 0.0,
                "back": {"rate_mbps": 500.0, "jitter_ms": 0.1},
            }
            for _ in range(2)
        ]
    )


def two_paths(rng: np.random.Generator) -> Scenario:
    """Two unlike paths: the ranges of tcco.txt section IV.A and what lies around them.

    20 to 500 Mbps (log-uniform), which changes by up to 30 % every 0.5 to 4 s; 2 to 20 ms one
    way; a queue of 0.3 to 3 times rate x RTT (Fig. 11); no loss, or 0.05, 0.15, 0.5 % (Fig. 9).
    """
    return _side_by_side([_path(rng, float(rng.uniform(2.0, 20.0))) for _ in range(2)])


def mixed_paths(rng: np.random.Generator) -> Scenario:
    """As `two_paths`, with base RTTs of 3 to 300 ms (log-uniform): what one policy is to serve."""
    return _side_by_side([_path(rng, log_uniform(rng, 1.5, 150.0)) for _ in range(2)])


def served_paths(rng: np.random.Generator) -> Scenario:
    """All that one policy of TCCO's is to serve: an episode is of one of six kinds.

    `mixed_paths` are 5 of 16 episodes, `several_paths` 3, and `one_bottleneck`, `beside_tcp`,
    `steady_paths` and `alternating` 2 each.
    """
    kinds = (
        *[mixed_paths] * 5,
        *[several_paths] * 3,
        *[one_bottleneck, beside_tcp, steady_paths, alternating] * 2,
    )
    return kinds[int(rng.integers(len(kinds)))](rng)


def several_paths(rng: np.random.Generator) -> Scenario:
    """One path, or three to eight, as those of `mixed_paths` but for their rates.

    Those are 20 to 500 Mbps shared by half of their number, so that a simulation isn't slower.
    """
    count = int(rng.choice([1, 3, 4, 5, 6, 7, 8]))
    share = max(1.0, count / 2)
    return _side_by_side([_path(rng, log_uniform(rng, 1.5, 150.0), share) for _ in range(count)])


def path_class(rtt_ms: float, rate_mbps: float) -> Sampler:
    """Two like paths that don't change, to see what a reward prefers: a queue of one product."""
    product = rate_mbps * 1e3 * rtt_ms / 8 / _PACKET
    path = {
        "rates": (rate_mbps, rate_mbps),
        "delays": (rtt_ms / 2, rtt_ms / 2),
        "period_s": 10.0,
        "delay_period_s": 10.0,
        "queue": max(30, round(product)),
        "loss": 0.0,
        "back": {"delay_ms": rtt_ms / 2},
    }
    spec = _side_by_side([path, path])
    return lambda rng: spec


def _path(rng: np.random.Generator, delay_ms: float, share: float = 1.0) -> dict[str, Any]:
    """A path of 20 to 500 Mbps, or a share of that, and a mean delay one way, which changes."""
    rate = log_uniform(rng, 20.0, 500.0) / share
    product = rate * 1e3 * 2 * delay_ms / 8 / _PACKET
    period = float(rng.uniform(1.0, 8.0))
    return {
        "rates": (rate, rate * float(rng.uniform(0.7, 1.3))),
        "delays": (delay_ms, delay_ms * float(rng.uniform(0.8, 1.2))),
        "period_s": period,
        "delay_period_s": period,
        "queue": max(10, round(product * float(rng.uniform(0.3, 3.0)))),
        "loss": float(rng.choice([0.0, 0.0005, 0.0015, 0.005])),
        "back": {"delay_ms": delay_ms},
    }


def _side_by_side(paths: list[dict[str, Any]]) -> Scenario:
    links: dict[str, Any] = {}
    names = _NAMES[: len(paths)]
    for name, path in zip(names, paths, strict=True):
        half, delay_half = path["period_s"] / 2, path["delay_period_s"] / 2
        links[name] = {
            "steps": [[0.0, path["rates"][0]], [half, path["rates"][1]]],
            "period_s": path["period_s"],
            "delay_steps": [[0.0, path["delays"][0]], [delay_half, path["delays"][1]]],
            "delay_period_s": path["delay_period_s"],
            "queue_packets": path["queue"],
            "loss": path["loss"],
        }
        links[f"{name}_back"] = path["back"]
    routes = [{"forward": [name], "back": [f"{name}_back"]} for name in names]
    # A receiver that never holds the paths up: all that comes while the slowest repairs a loss.
    waits_ms = [
        max(p["delays"]) + p["back"].get("delay_ms", 0.0) + 12.0 * p["queue"] / min(p["rates"])
        for p in paths
    ]
    window = round(3 * sum(max(p["rates"]) for p in paths) * 125 * max(waits_ms))
    flows = [{"name": "mptcp", "paths": routes, "window_bytes": max(6 << 20, window)}]
    return Scenario.parse({"links": links, "flows": flows}, f"{len(paths)} paths")


def wireless(rng: np.random.Generator) -> Scenario:
    """One flow over a generated link of `data.netsim.wireless`, 3 to 150 Mbps.

    10 to 50 ms one way, a queue of 40 to 400 ms, T_d 10 to 200 ms whatever the queue is, for the
    application knows its own needs and not the path; half of the links lose packets at random.
    """
    kind = str(rng.choice(list(KINDS)))
    mean = log_uniform(rng, _SLOWEST_MBPS, _FASTEST_MBPS)
    link = {"generate": {"kind": kind, "mean_mbps": mean, "seed": int(rng.integers(1 << 31))}}
    return _one_link(link, mean, rng)


NETWORKS: dict[str, tuple[str | None, float, float]] = {
    "wired": (None, 30.0, 120.0),
    "wifi": ("wifi-varied", 10.0, 100.0),
    "4g": ("cellular-varied", 6.0, 24.0),
    "5g": ("cellular-varied", 30.0, 120.0),
}
"""Networks of nuwa.txt Fig. 12: kind of link, None if its rate is constant; least and greatest mean
rate (Mbps; ours, those of 4G and 5G around what the scenario ``nuwa-fig16`` has)."""


def network(name: str) -> Sampler:
    """One flow over a link of one of `NETWORKS`; all but its rate is as in `wireless`."""
    kind, least, most = NETWORKS[name]

    def sample(rng: np.random.Generator) -> Scenario:
        mean = log_uniform(rng, least, most)
        if kind is None:
            return _one_link({"rate_mbps": mean}, mean, rng)
        made = {"kind": kind, "mean_mbps": mean, "seed": int(rng.integers(1 << 31))}
        return _one_link({"generate": made}, mean, rng)

    return sample


def measured(traces: Sequence[capacity.Trace]) -> Sampler:
    """One flow over a measured link, drawn from the traces given; all else is as in `wireless`.

    An episode begins anywhere in its trace, which repeats. Means outside 3 to 150 Mbps are brought
    to the nearer of the two, the whole trace with them.

    Parameters
    ----------
    traces : sequence of Trace
        As from `data.netsim.capacity.ingested` and `split`: train, validate and test by trace.

    Raises
    ------
    UserError
        When there is none, or one carries nothing.
    """
    if not traces:
        raise UserError("traces: none to draw from: ingest some, or give another split")
    for one in traces:
        if not len(one.mbps) or not one.mbps.mean() > 0:
            raise UserError(f"trace {one.name}: carries nothing at any time: leave it out")

    def sample(rng: np.random.Generator) -> Scenario:
        trace = traces[int(rng.integers(len(traces)))]
        first = int(rng.integers(len(trace.time_s)))
        times = np.roll((trace.time_s - trace.time_s[first]) % trace.length_s, -first)
        own = float(trace.mbps.mean())
        mean = min(_FASTEST_MBPS, max(_SLOWEST_MBPS, own))
        rates = np.roll(trace.mbps, -first) * (mean / own)
        pairs = [[float(t), float(r)] for t, r in zip(times, rates, strict=True)]
        return _one_link({"steps": pairs, "period_s": trace.length_s}, mean, rng)

    return sample


def _one_link(link: dict[str, Any], mean_mbps: float, rng: np.random.Generator) -> Scenario:
    delay, queue_ms = float(rng.uniform(10.0, 50.0)), log_uniform(rng, 40.0, 400.0)
    packets = max(20, round(mean_mbps * 1e3 * queue_ms / 8 / _PACKET))
    loss = float(rng.choice([0.0, 0.0005]))
    tree = {
        "links": {
            "cell": {**link, "delay_ms": delay, "queue_packets": packets, "loss": loss},
            "back": {"delay_ms": delay},
        },
        "flows": [
            {
                "name": "flow",
                "target_delay_ms": log_uniform(rng, 10.0, 200.0),
                "paths": [{"forward": ["cell"], "back": ["back"]}],
            }
        ],
    }
    return Scenario.parse(tree, "one link")


def dumbbell(more: dict[str, Any] | None = None) -> Sampler:
    """MA-CC's network (ma-cc.txt Fig. 2, Table 1), both ends of its core run by agents.

    Parameters
    ----------
    more : dict, optional
        Settings of the scenario besides: ``{"flows.0.cc": "reno"}`` leaves agents the routers.
    """
    settings = {"links.core.queue": "agent", "links.core_back.queue": "agent"}
    return fixed("macc-fig4", "droptail", settings | (more or {}))


NAMED: dict[str, Callable[[], Sampler]] = {
    "alternating": lambda: alternating,
    "two_paths": lambda: two_paths,
    "mixed_paths": lambda: mixed_paths,
    "served_paths": lambda: served_paths,
    "wireless": lambda: wireless,
    **{f"nuwa_{name}": partial(network, name) for name in NETWORKS},
    "dumbbell": dumbbell,
    "dumbbell_fifo": lambda: fixed("macc-fig4", "droptail"),
    "dumbbell_red": lambda: fixed("macc-fig4", "red"),
    "dumbbell_newreno": lambda: dumbbell({"flows.0.cc": "reno"}),
    "greedy_neighbours": lambda: greedy_neighbours,
    "many_senders": lambda: many_senders,
}
"""Samplers by the names that settings give them."""


def named(name: str) -> Sampler:
    """A sampler by its name in `NAMED`; any other is a scenario's, the same in every episode.

    ``measured:DIR`` draws from those of the ingested directory's traces that are trained on,
    ``validation:DIR`` from those that choose a network, ``held-out:DIR`` from those that judge it.

    Raises
    ------
    UserError
        For an unknown scenario, or a directory that isn't an ingested one or has no traces there.
    """
    for part, prefix in enumerate(SPLITS):
        if name.startswith(prefix):
            found = capacity.ingested(name.removeprefix(prefix))
            traces = capacity.split(found)[part]
            if found and not traces:
                raise UserError(
                    f"{name}: none of the {len(found)} traces there, by the hash of their names, "
                    "which alone decides: ingest more of them (docs/training.md, Measured traces)"
                )
            return measured(traces)
    return NAMED[name]() if name in NAMED else fixed(name)


def of_split(name: str, part: int) -> str:
    """The sampler that stands for another one's in a part of `SPLITS`.

    Measured traces have other ones in each part; all other samplers are told apart by seeds.
    """
    training = SPLITS[TRAINING]
    return SPLITS[part] + name.removeprefix(training) if name.startswith(training) else name
