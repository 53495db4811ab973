"""The gates that a candidate must pass to be promoted: a dict of their modules.

A gate is a module with

- ``Settings``: its part of ``promotion.gates`` in ``params.yaml``, all with defaults;
- ``check(comparison, settings) -> Finding``.

It imports nothing heavy at its top: settings are validated whenever ``params.yaml`` is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from data.errors import unknown_name
from data.strict import Strict

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison

GATES: dict[str, str] = {
    "test-set": "pipelines.gates.test_set",
    "groups": "pipelines.gates.groups",
    "certificate": "pipelines.gates.certificate",
    "budget": "pipelines.gates.budget",
    "control": "pipelines.gates.control",
}
"""Name -> module."""


@dataclass(frozen=True)
class Finding:
    """The judgement of a gate.

    Attributes
    ----------
    passed : bool or None
        None if the gate doesn't apply (without a champion there is nothing to compare with).
    reason : str
        One line for people.
    evidence : dict
        The numbers that the judgement rests on.
    """

    passed: bool | None
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)


class Gate(Protocol):
    """The contents of a gate's module."""

    Settings: type[Strict]

    def check(self, comparison: Comparison, settings: Any) -> Finding:
        """Judge a candidate."""
        ...


def gate(name: str) -> Gate:
    """Find a gate by its name.

    Raises
    ------
    UserError
        When there is no such gate; the message has the nearest name.
    """
    if name not in GATES:
        raise unknown_name("gate", name, GATES)
    return cast(Gate, importlib.import_module(GATES[name]))


def judge(comparison: Comparison, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Finding]:
    """Ask every gate that ``promotion.gates`` names, in that order."""
    findings = {}
    for name, tree in settings.items():
        asked = gate(name)
        where = f"promotion.gates.{name}"
        findings[name] = asked.check(comparison, asked.Settings.parse(tree, where))
    return findings
