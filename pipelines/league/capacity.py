"""The most that a scenario's measured flows could get: what its bottlenecks carry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.errors import UserError
from data.netsim import traces
from data.netsim.elements import Link
from data.netsim.rates import OPPORTUNITIES
from data.netsim.scenario import Scenario

if TYPE_CHECKING:
    from pipelines.league.draw import Drawn

PACKET_BITS = 12_000
_LEAST_MBPS = 1e-6
"""One bit a second: what is below is rounding."""


def of_all(drawn: Iterable[Drawn]) -> dict[str, float]:
    """What the bottlenecks of each scenario carry (Mbit/s), by the scenario's name.

    Raises
    ------
    UserError
        When a scenario's can't be told or is nothing, since there is no power then.
    """
    found = {}
    for one in drawn:
        spec = one.spec
        try:
            most = most_mbps(spec, one.seed)
        except UserError as error:
            raise UserError(f"{one.name}: {error}") from None
        if most < _LEAST_MBPS:
            raise UserError(
                f"{one.name}: the bottleneck carries nothing in the measured time, "
                f"{spec.warmup_s:g} to {spec.duration_s:g} s: there is no power: give another "
                "rate, trace or warmup_s"
            )
        found[one.name] = most
    return found


def most_mbps(spec: Scenario, seed: int) -> float:
    """Application data that the narrowest links of all measured paths carry (Mbit/s).

    A link that is the narrowest of several paths counts once. Rates are means over the time that
    is measured; headers are taken off.

    Raises
    ------
    UserError
        When some measured path has no link with a rate, or its trace can't be read.
    """
    found: dict[str, float] = {}
    payload = []
    for flow in spec.flows:
        if not flow.measure:
            continue
        payload.append(flow.segment_bytes / (flow.segment_bytes + flow.header_bytes))
        for path in flow.paths:
            for copy in range(flow.count):
                names = [name.replace("{i}", str(copy)) for name in path.forward]
                rates = {name: _mean_mbps(spec, name, seed) for name in names}
                rated = {name: rate for name, rate in rates.items() if rate is not None}
                if not rated:
                    raise UserError(
                        f"flow {flow.name}: no link on a path has a rate: there is no power "
                        "without one: give rate_mbps, steps, trace or generate"
                    )
                narrowest = min(rated, key=lambda name: rated[name])
                found[narrowest] = rated[narrowest]
    return sum(found.values()) * min(payload)


def _mean_mbps(spec: Scenario, name: str, seed: int) -> float | None:
    """Mean rate of a link over the measured time; None if it only delays."""
    link = spec.links[name]
    if link.rate_mbps is not None:
        return link.rate_mbps
    series = _series(link, seed)
    if series is None:
        return None
    start, end = spec.warmup_s * 1e9, spec.duration_s * 1e9
    return float(_bits(series, end) - _bits(series, start)) / (end - start) * 1e3


def _series(link: Link, seed: int) -> traces.Series | None:
    if link.steps is not None:
        return traces.steps(link.steps, link.period_s)
    if link.trace is not None:
        return traces.read(Path(link.trace))
    if link.generate is not None:
        return traces.generate(**{"seed": seed, **link.generate.model_dump(exclude_none=True)})
    return None


def _bits(series: traces.Series, until_ns: float) -> float:
    """What a link carries from the start to a time."""
    kind, times, rates, period = series
    rounds, rest = divmod(until_ns, period) if period else (0.0, until_ns)
    if kind == OPPORTUNITIES:
        return float(PACKET_BITS * (rounds * len(times) + np.searchsorted(times, rest, "right")))
    ends = np.append(times[1:], period or max(until_ns, float(times[-1])))
    whole = float((rates * (ends - times)).sum()) / 1e9
    part = float((rates * np.clip(rest - times, 0, ends - times)).sum()) / 1e9
    return rounds * whole + part
