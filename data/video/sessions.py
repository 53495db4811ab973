"""Many short streaming sessions over two paths each: contexts drawn, simulated, and measured.

A session is a connection of its own links, so many of them share a simulation and don't touch
each other. The sender writes video at 1.25 times its rate, as servers do that throttle downloads;
what the viewer sees of it is `data.video.playback`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.network import Network
from data.netsim.scenario import Scenario
from data.video.params import SessionParams
from data.video.playback import play

Table = dict[str, NDArray[np.float64]]
RATES_MBPS = (0.5, 1.0, 1.5, 2.5, 4.0, 6.0)
"""The ladder that streaming rates are drawn from; each title's differs a little."""
AHEAD = 1.25
STEP_S = 0.1
WIFI = ((0.3, 1.2, 0.35), (0.7, 5.0, 0.35))
CELLULAR = ((0.5, 0.8, 0.35), (0.5, 3.0, 0.4))
"""Available bandwidth: weight, median (Mbps) and deviation of the logarithm of each part."""


def drawn(count: int, rng: np.random.Generator) -> Table:
    """Contexts that nobody has touched yet: bandwidths, rates, and what paths are like."""

    def mixture(parts: tuple[tuple[float, float, float], ...]) -> NDArray[np.float64]:
        weights, medians, spread = np.array(parts).T
        part = rng.choice(len(parts), count, p=weights)
        mbps = medians[part] * np.exp(spread[part] * rng.normal(size=count))
        return np.asarray(np.clip(mbps, 0.2, 12.0))

    def between(low: float, high: float) -> NDArray[np.float64]:
        return np.exp(rng.uniform(np.log(low), np.log(high), count))

    return {
        "bw1_mbps": mixture(WIFI),
        "bw2_mbps": mixture(CELLULAR),
        "rate_mbps": rng.choice(RATES_MBPS, count) * np.exp(0.08 * rng.normal(size=count)),
        "base1_ms": between(4.0, 20.0),
        "base2_ms": between(15.0, 50.0),
        "random1": between(1e-4, 2e-2),
        "random2": between(1e-4, 1e-2),
        "queue1_ms": between(40.0, 250.0),
        "queue2_ms": between(80.0, 400.0),
    }


def simulated(params: SessionParams) -> Iterator[Table]:
    """Sessions, one batch after the other; together they are as many as asked for.

    Yields
    ------
    dict
        Column -> float64 array [sessions]: the contexts of `drawn`; of each path its mean one-way
        delay (``delay1_ms``) and the share of its packets that were lost (``loss1``); and
        what `data.video.playback.Playback` holds.
    """
    rng = np.random.default_rng(params.seed)
    context = drawn(params.count, rng)
    for first in range(0, params.count, params.batch):
        part = {name: values[first : first + params.batch] for name, values in context.items()}
        yield _batch(part, params, params.seed + 1 + first)


def _batch(context: Table, params: SessionParams, seed: int) -> Table:
    count = len(context["rate_mbps"])
    network = Network(_scenario(context, params), params.cc, seed=seed)
    steps = round(params.duration_s / STEP_S)
    received = np.empty((steps, count))
    for step in range(steps):
        network.advance((step + 1) * STEP_S)
        received[step] = network.state.conn["data_rcv"]
    payload = network.state.conn["payload"]
    media_s = received * payload * 8 / (context["rate_mbps"] * 1e6)
    seen = play(media_s, STEP_S, 1.0, 2.0, context["rate_mbps"])
    measured: Table = {}
    for path in (1, 2):
        sub, link = network.state.sub[path - 1 :: 2], network.state.link[2 * (path - 1) :: 4]
        none = sub["owd_n"] == 0
        mean = sub["owd_sum"] / np.maximum(sub["owd_n"], 1) / 1e6
        measured[f"delay{path}_ms"] = np.where(none, context[f"base{path}_ms"], mean)
        lost = link["lost"] + link["dropped"]
        measured[f"loss{path}"] = lost / np.maximum(link["arrived"], 1)
    return {**context, **measured, **vars(seen)}


def _scenario(context: Table, params: SessionParams) -> Scenario:
    links: dict[str, Any] = {}
    flows: list[dict[str, Any]] = []
    for i in range(len(context["rate_mbps"])):
        paths = []
        for path in (1, 2):
            rate = float(context[f"bw{path}_mbps"][i])
            base = float(context[f"base{path}_ms"][i])
            room = float(context[f"queue{path}_ms"][i]) * rate * 1e3 / 8 / 1500
            links[f"{path}-{i}"] = {
                "rate_mbps": rate,
                "delay_ms": base,
                "queue_packets": max(4, round(room)),
                "loss": float(context[f"random{path}"][i]),
            }
            links[f"back{path}-{i}"] = {"delay_ms": base}
            paths.append({"forward": [f"{path}-{i}"], "back": [f"back{path}-{i}"]})
        flows.append(
            {
                "name": f"session{i}",
                "paths": paths,
                "rate_mbps": AHEAD * float(context["rate_mbps"][i]),
                "scheduler": params.scheduler,
                "window_bytes": 524_288,
                "segment_bytes": 1400,
            }
        )
    # Links of a session follow one another: forward and back of the first path, of the second.
    tree = {"duration_s": params.duration_s, "links": links, "flows": flows}
    return Scenario.parse(tree, "sessions")
