"""Say by numbers whether a trained agent beats what it has to beat, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.studies.environments.judge import AGENT, CONSTANT, RANDOM, SCRIPT, Result, interval

UNTRAINED = "untrained"
BARS = (RANDOM, UNTRAINED, CONSTANT)
"""Kinds of policies that an agent has to beat."""
KINDS = (*BARS, SCRIPT)
NAMES = {RANDOM: "random actions", UNTRAINED: "its untrained network",
         CONSTANT: "the best constant action", SCRIPT: "the best script"}  # fmt: skip


def average(results: Sequence[Result]) -> Result:
    """Networks of several seeds as one: each episode counts with the mean over them."""
    first = results[0]
    name = first.name if len(results) == 1 else f"{first.name} ({len(results)} seeds)"
    columns = {what: np.mean([getattr(one, what) for one in results], axis=0)
               for what in ("returns", "mbps", "rtt_ms")}  # fmt: skip
    return Result(name, first.kind, **columns)


def best(results: Sequence[Result], kind: str) -> Result | None:
    """The best policy of a kind among those that played most episodes; None if there is none."""
    own = [one for one in results if one.kind == kind]
    most = max((len(one.returns) for one in own), default=0)
    whole = [one for one in own if len(one.returns) == most]
    return max(whole, key=lambda one: float(one.returns.mean()), default=None)


def verdict(
    results: Sequence[Result], facts: Mapping[str, Any], seeds: Sequence[Result] = ()
) -> dict[str, Any]:
    """Content of ``verdict.json``; see `pipelines.rl.results.Verdict`.

    Parameters
    ----------
    results : sequence of Result
        With one of kind ``agent``, which has played all episodes.
    facts : mapping
        ``agent``, ``sampler``, ``seeds``, ``steps``, ``cpu_s``, ``command``, ``best_steps``,
        ``settings``.
    seeds : sequence of Result
        The agent's trainings one by one. With several, intervals are as wide as episodes and
        trainings make them together; with one they speak of that network, not of the method.
    """
    (own,) = (one for one in results if one.kind == AGENT)
    over: dict[str, Any] = {}
    for kind in KINDS:
        other = best(results, kind)
        over[kind] = None if other is None else _over(own, other, seeds)
    met = all(over[kind] is not None and over[kind]["beaten"] for kind in BARS)
    found = {
        "format": 1,
        **facts,
        "episodes": len(own.returns),
        "rows": [_row(one) for one in results],
        "over": over,
        "met": met,
    }
    return {**found, "text": text(found)}


def text(found: Mapping[str, Any]) -> list[str]:
    """A verdict in words: what came of it, a line for each kind, and why not if it wasn't met."""
    seeds = "seed" if len(found["seeds"]) == 1 else "seeds"
    own = next(row for row in found["rows"] if row["kind"] == AGENT)
    lines = [
        f"{found['agent']} on {found['sampler']}: "
        f"{'beats what it has to' if found['met'] else 'does NOT beat all that it has to'}: "
        f"{own['mean']:.3f} a step ({own['mbps']:.1f} Mbps at {own['rtt_ms']:.1f} ms) after "
        f"{found['steps']} steps, {found['cpu_s']:.0f} CPU seconds, {seeds} "
        f"{', '.join(map(str, found['seeds']))}, {found['episodes']} test episodes"
    ]
    for kind, one in found["over"].items():
        if one is None:
            continue
        named = "" if one["policy"] == kind else f" ({one['policy']})"
        lines.append(
            f"over {NAMES[kind]}{named}: {one['mean']:+.3f} ({one['low']:+.3f} to "
            f"{one['high']:+.3f}){'' if one['beaten'] else _why(one, kind)}"
        )
    late = [steps for steps in found["best_steps"] if steps >= found["steps"]]
    if not found["met"] and late:
        lines.append("the last network was the best: it was still getting better at the end")
    return lines


def _why(one: Mapping[str, Any], kind: str) -> str:
    bar = "" if kind in BARS else ", which isn't asked"
    if one["high"] < 0:
        return f": worse{bar}"
    if one["mean"] <= 0:
        return f": no better{bar}"
    return f": better by less than episodes differ{bar}"


def _row(one: Result) -> dict[str, Any]:
    mean, low, high = _ends(one.returns)
    return {
        "policy": one.name,
        "kind": one.kind,
        "episodes": len(one.returns),
        "mean": mean,
        "low": low,
        "high": high,
        "mbps": float(one.mbps.mean()),
        "rtt_ms": float(one.rtt_ms.mean()),
    }


def _over(own: Result, other: Result, seeds: Sequence[Result]) -> dict[str, Any]:
    """Difference in all episodes, or in the first ones if the other played no more."""
    count = min(len(own.returns), len(other.returns))
    mean, half = interval(own.returns[:count] - other.returns[:count])
    if len(seeds) > 1:
        means = np.array([one.returns[:count].mean() for one in seeds])
        half = float(np.hypot(half, interval(means)[1]))
    low, high = mean - half, mean + half
    return {"policy": other.name, "mean": mean, "low": low, "high": high, "beaten": low > 0}


def _ends(values: NDArray[np.float64]) -> tuple[float, float, float]:
    mean, half = interval(values)
    return mean, mean - half, mean + half
