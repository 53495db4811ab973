"""The families of scenarios that the league draws from, with the ranges that they state.

Nothing is imported here but the standard library: names are looked up before anything heavy is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SINGLE, MULTI = "single-path", "multipath"
STANDINGS = {SINGLE: "one path", MULTI: "several paths (MPTCP)"}
"""What families are summed up in: coupled controls are for several paths alone."""
REFERENCE = "cubic"
"""The control whose place a player takes, if it has neighbours."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Family:
    """A family of scenarios.

    Attributes
    ----------
    standing : str
        A name of `STANDINGS`.
    says : str
        What its scenarios are, for readers.
    draw : str
        ``module:function``, which maps a numpy Generator and the ranges to the tree of a scenario
        with a flow called ``tested``; other flows name their controls.
    ranges : mapping
        A name of `UNITS` -> the least and the most; drawn evenly in the logarithm, but for those
        of `WHOLE`.
    """

    standing: str
    says: str
    draw: str
    ranges: Mapping[str, Range]


UNITS = {
    "rate_mbps": "rate of {} Mbit/s",
    "rtt_ms": "base RTT of {} ms",
    "queue": "queue of {} times rate × base RTT",
    "queue_ms": "queue of {} ms at the mean rate",
    "level": "levels of {} times the rate",
    "step_s": "each for {} s",
    "detour": "in half of them delays of {} times the base RTT in turns with it",
    "loss": "random loss of {} of the packets",
    "burst": "in a third of them in bursts of {} packets in the mean",
    "neighbours": "{} CUBIC neighbours",
    "paths": "{} paths",
}
"""What is drawn -> its words, with the range in place of the braces."""
WHOLE = ("neighbours", "paths")
"""Drawn as whole numbers, each as likely."""

_LINK: dict[str, Range] = {"rate_mbps": (2, 200), "rtt_ms": (10, 200), "queue": (0.3, 3)}
_STEPS: dict[str, Range] = {"level": (0.3, 1), "step_s": (1, 5)}
_PATHS: dict[str, Range] = {"paths": (2, 3)}

FAMILIES: dict[str, Family] = {
    "constant": Family(
        SINGLE, "a flow on a link of constant rate", "pipelines.league.single:constant", _LINK
    ),
    "stepping": Family(
        SINGLE,
        "a flow on a link whose rate steps between two to four levels",
        "pipelines.league.single:stepping",
        {**_LINK, **_STEPS, "detour": (1.2, 2)},
    ),
    "traces": Family(
        SINGLE,
        "a flow on a generated cellular, WiFi or satellite trace (`data.netsim.wireless`)",
        "pipelines.league.single:traced",
        {"rate_mbps": (3, 100), "rtt_ms": (20, 100), "queue_ms": (40, 400)},
    ),
    "lossy": Family(
        SINGLE,
        "a flow on a link of constant rate that loses packets at random",
        "pipelines.league.single:lossy",
        {**_LINK, "rate_mbps": (2, 100), "loss": (0.0002, 0.02), "burst": (2, 10)},
    ),
    "friendly": Family(
        SINGLE,
        "a flow beside others that run CUBIC, all over one link; the first 20 of 60 s don't count",
        "pipelines.league.single:friendly",
        {**_LINK, "rate_mbps": (4, 100), "rtt_ms": (10, 100), "queue": (0.5, 3),
         "neighbours": (1, 3)},
    ),
    "mptcp-separate": Family(
        MULTI,
        "a connection over paths with a bottleneck each (NSB): in half of them of constant rate, "
        "else stepping or a generated trace",
        "pipelines.league.multi:separate",
        {**_LINK, "rate_mbps": (2, 100), **_STEPS, **_PATHS},
    ),
    "mptcp-shared": Family(
        MULTI,
        "a connection over paths of unlike base RTTs that share a bottleneck (SB)",
        "pipelines.league.multi:shared",
        {**_LINK, "queue": (0.5, 3), **_PATHS},
    ),
    "mptcp-friendly": Family(
        MULTI,
        "as mptcp-shared, beside one connection of one path that runs CUBIC; the first 20 of 60 s "
        "don't count",
        "pipelines.league.multi:friendly",
        {**_LINK, "rate_mbps": (4, 100), "rtt_ms": (10, 100), "queue": (0.5, 3), **_PATHS},
    ),
}  # fmt: skip
"""Name -> family. A line here and a function that draws make another one."""
GIVEN = {"own-scenarios": "scenario files, each with three seeds, given by --scenario",
         "own-traces": "capacity traces given by --traces"}  # fmt: skip
"""Families that a user's files make, and what they hold; they are in no standing."""


def in_words(family: Family) -> str:
    """Ranges of a family as a reader sees them."""
    parts = []
    for name, (low, high) in family.ranges.items():
        between = f"{low:g} to {high:g}" if name not in WHOLE or high > low + 1 else ""
        parts.append(UNITS[name].format(between or f"{low:g} or {high:g}"))
    return ", ".join(parts)
