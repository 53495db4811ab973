"""Draw the league's scenarios: the same seed gives the same list, which a digest stands for."""

from __future__ import annotations

import hashlib
import importlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.netsim.scenario import Scenario
from pipelines.league.families import FAMILIES, WHOLE, Range

SEED, EACH = 2026, 25
"""What the published list was drawn with: seed, and scenarios of each family."""


@dataclass(frozen=True)
class Drawn:
    """A scenario of the league.

    Attributes
    ----------
    family : str
        A key of `FAMILIES`, or of `GIVEN` if a user's file made it.
    name : str
        Unique in the league.
    seed : int
        The simulation's: starts and random losses.
    spec : Scenario
    source : str
        Content hash of the file that it was made of, if any.
    """

    family: str
    name: str
    seed: int
    spec: Scenario
    source: str = ""


def scenarios(families: Iterable[str], seed: int = SEED, each: int = EACH) -> list[Drawn]:
    """Draw scenarios of each family; a family's do not depend on what else is drawn.

    Parameters
    ----------
    families : iterable of str
        Keys of `FAMILIES`.
    seed, each : int
        Seed of the drawing, and how many of each family: fewer are the first of more.
    """
    found = []
    for name in families:
        family = FAMILIES[name]
        module, _, function = family.draw.partition(":")
        draw = getattr(importlib.import_module(module), function)
        for i in range(each):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), i])
            tree = draw(rng, family.ranges)
            label = f"{name}-{i:02d}"
            found.append(Drawn(name, label, i, Scenario.parse(tree, label)))
    return found


def digest(drawn: Iterable[Drawn]) -> str:
    """SHA-256 over all scenarios: their settings, seeds and the content of files behind them."""
    whole = [
        [one.name, one.seed, one.source or one.spec.model_dump(mode="json", exclude_unset=True)]
        for one in drawn
    ]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def pick(rng: np.random.Generator, ranges: Mapping[str, Range], name: str) -> float:
    """A value within a family's range: even in the logarithm, of three digits; or a whole number.

    Three digits, so that the last bit of a logarithm, which machines disagree on, changes nothing.
    """
    low, high = ranges[name]
    if name in WHOLE:
        return int(rng.integers(int(low), int(high) + 1))
    return digits(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def digits(value: float) -> float:
    """A number of three digits."""
    return float(f"{value:.3g}")


def packets(rate_mbps: float, span_ms: float) -> int:
    """Packets of 1500 bytes that a rate carries in a time, at least ten."""
    return max(10, round(rate_mbps * 1e3 * span_ms / 8 / 1500))


def tree(
    links: Mapping[str, Any], paths: list[str], neighbours: int = 0, settles: bool = False
) -> dict[str, Any]:
    """A scenario's tree: the flow under test on its paths, and neighbours on the bottleneck's.

    Parameters
    ----------
    links : mapping
        Name -> settings; each path NAME has the links ``NAME`` and ``NAME_back``; the link
        ``bottleneck`` comes last on every path if there is one.
    paths : list of str
        Names of the paths.
    neighbours : int
        Flows that run CUBIC over the first path.
    settles : bool
        Whether only 40 s count, after 20 s in which flows find their shares; else 30 s do.
    """
    shared = ["bottleneck"] if "bottleneck" in links else []
    routes = [{"forward": [name, *shared], "back": [f"{name}_back"]} for name in paths]
    flow = {"start_spread_s": 0.5, "window_bytes": _window(links)}
    flows: list[dict[str, Any]] = [{"name": "tested", "paths": routes, **flow}]
    if neighbours:
        beside = {"name": "cubic", "cc": "cubic", "count": neighbours, "paths": routes[:1]}
        flows.append({**beside, **flow})
    times = {"duration_s": 60.0, "warmup_s": 20.0} if settles else {"duration_s": 30.0}
    return {**times, "sample_s": 0.5, "links": dict(links), "flows": flows}


def _window(links: Mapping[str, Any]) -> int:
    """Receive window that never holds a sender up: all that comes while the slowest link drains."""
    narrow = [link for link in links.values() if "queue_packets" in link]
    rates = [max(_rates(link)) for link in narrow]
    waits_ms: float = sum(12.0 * link["queue_packets"] / min(_rates(link)) for link in narrow)
    delays_ms = sum(_delay_ms(link) for link in links.values())
    return max(6 << 20, round(3 * sum(rates) * 125 * (waits_ms + delays_ms)))


def _rates(link: Mapping[str, Any]) -> list[float]:
    if "steps" in link:
        return [rate for _, rate in link["steps"]]
    if "generate" in link:
        return [link["generate"]["mean_mbps"]]
    return [link["rate_mbps"]]


def _delay_ms(link: Mapping[str, Any]) -> float:
    steps = link.get("delay_steps") or [(0.0, link.get("delay_ms", 0.0))]
    return float(max(delay for _, delay in steps))
