"""Says in whole sentences who loses to whom, by intervals alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelines.studies.offline.statistics import Estimate

TITLES = {
    "bc": "behaviour cloning",
    "cql": "discrete CQL",
    "iql": "IQL",
    "ensemble": "the pessimistic ensemble",
}
_SAID = {1: "beats {}", -1: "loses to {}", 0: "can't be told apart from {}"}


def title(name: str) -> str:
    """A method in words."""
    return TITLES.get(name, name)


def verdict(name: str, beside: Mapping[str, Estimate]) -> str:
    """A sentence on one player.

    Parameters
    ----------
    name : str
    beside : mapping
        Others in words -> how much more power this one has, by the difference's interval.
    """
    parts = []
    for sign, text in _SAID.items():
        names = [f"{other} ({shown(one, '+')})" for other, one in beside.items()
                 if one.sign == sign]  # fmt: skip
        if names:
            parts.append(text.format(listed(names)))
    return f"{_begun(title(name))} {listed(parts)}."


def summary(best: str, beside: Mapping[str, Estimate]) -> str:
    """A sentence on all agents beside the best logged control.

    Parameters
    ----------
    best : str
        It, in words.
    beside : mapping
        Method -> how much more power it has.
    """
    by = {sign: [title(name) for name, one in beside.items() if one.sign == sign] for sign in _SAID}
    parts: list[str] = []
    for sign, verb in ((-1, "lose"), (1, "beat"), (0, "")):
        if not by[sign]:
            continue
        other = "it" if parts else best
        single = "s" if len(by[sign]) == 1 else ""
        words = f"{verb}{single} {'to ' * (sign < 0)}{other}" if sign else (
            f"can't be told apart from {other}"
        )  # fmt: skip
        parts.append(f"{listed(by[sign])} {words}")
    whole = f"Of {len(beside)} agents that learned from logs alone, {'; '.join(parts)}."
    return whole if len(beside) > 1 else f"{_begun(parts[0])}."


def shown(one: Estimate, sign: str = "") -> str:
    """A figure with its interval."""
    return f"{one.value:{sign}.3f} [{one.low:{sign}.3f}, {one.high:{sign}.3f}]"


def listed(parts: Sequence[str]) -> str:
    """Parts with commas and an "and" between."""
    *some, last = parts
    return f"{', '.join(some)} and {last}" if some else last


def _begun(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
