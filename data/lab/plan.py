"""A campaign says which connections to collect; it is read from a YAML file."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from data.errors import UserError
from data.lab import sampler
from data.lab.scenario import Scenario, Strict, find, parse, read_yaml


class Group(Strict):
    """Repetitions of one scenario.

    ``set`` overrides values of the scenario file by dotted keys (``stages.wifi.delay_ms: 20``).
    ``alpha_check`` turns on the paper's validation by the group's largest throughput. ``logs``
    is the number of repetitions whose logs are kept (default: all); of the others only the
    figures in campaign.jsonl stay.
    """

    name: str
    scenario: str
    repeats: int = Field(gt=0, le=100_000)
    set: dict[str, Any] = Field(default={})
    alpha_check: bool = False
    logs: int | None = Field(default=None, ge=0)


class Random(Strict):
    """Connections of sampled conditions, family by family, half of them SB."""

    dataset: str
    families: dict[str, sampler.Family]


class Campaign(Strict):
    """What `cczoo lab collect` collects."""

    campaign: str
    seed: int = 0
    groups: tuple[Group, ...] = Field(default=(), max_length=10_000)
    random: Random | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Campaign:
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ValueError("two groups have one name")
        if not names and self.random is None:
            raise ValueError("give groups or random")
        return self


@dataclass(frozen=True)
class Source:
    """One group of equal label: its target and a function from a seed to a scenario."""

    name: str
    target: int
    alpha_check: bool
    draw: Callable[[int], Scenario]
    logs: int | None = None

    def keeps_log(self, index: int) -> bool:
        """Whether the log of this repetition is kept."""
        return self.logs is None or index < self.logs


def seed_of(campaign: Campaign, group: str, index: int, attempt: int = 0) -> int:
    """Seed of a connection, the same on every machine."""
    words = [campaign.seed, zlib.crc32(group.encode()), index, attempt]
    return int(np.random.SeedSequence(words).generate_state(1)[0] >> 1)


def _override(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    *parents, last = key.split(".")
    at = values
    for parent in parents:
        if not isinstance(at.get(parent), dict):
            raise UserError(f"{where}: set: {key}: the scenario has no {parent!r}")
        at = at[parent]
    at[last] = value


def _scenario(group: Group, where: str) -> Scenario:
    values = read_yaml(group.scenario)
    values.setdefault("case", group.name)
    for key, value in group.set.items():
        _override(values, key, value, where)
    scenario: Scenario = parse(Scenario, values, f"{where}: group {group.name}")
    return scenario


def sources(campaign: Campaign) -> list[Source]:
    """Groups of a campaign, ready to draw from.

    Raises
    ------
    UserError
        A group's scenario or override is wrong.
    """
    found = [
        Source(g.name, g.repeats, g.alpha_check, _scenario(g, campaign.campaign).varied, g.logs)
        for g in campaign.groups
    ]
    if campaign.random is not None:
        dataset = campaign.random.dataset
        for name, family in campaign.random.families.items():
            for label in ("SB", "NSB"):
                target = (family.connections + (label == "SB")) // 2
                draw = sampler.Draw(dataset, name, family, label)
                found.append(Source(f"{name}-{label.lower()}", target, False, draw))
    return [source for source in found if source.target]


def load(name: str | Path) -> Campaign:
    """Read a campaign by file or name.

    Raises
    ------
    UserError
        Unknown name or key, wrong value, or a scenario in place of a campaign.
    """
    values = read_yaml(name)
    if "stages" in values:
        raise UserError(f"{find(name)}: this is one scenario; use `cczoo lab run`")
    campaign: Campaign = parse(Campaign, values, str(find(name)))
    return campaign
