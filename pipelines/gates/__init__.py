"""The gates that a candidate must pass to be promoted: a dict of their modules.

A gate is a module with

- ``Settings``: its part of ``promotion.gates`` in ``params.yaml``, all with defaults;
- ``check(comparison, settings) -> Finding``.

It imports nothing heavy at its top: settings are validated whenever ``params.yaml`` is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
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
FOR_POLICIES = ("control",)
"""Gates that are asked for a policy, whether settings name them or not."""
FOR_FUNCTIONS = ("certificate", "budget")
"""Gates that are asked for a function, which has no test set."""


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
    logged : dict
        Those of them that stand with the version in the registry, as its tags.
    """

    passed: bool | None
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)
    logged: dict[str, float | str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """What an audit keeps of it."""
        return {"passed": self.passed, "reason": self.reason, "evidence": self.evidence}


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


def asked_of(
    files: Collection[str], settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Gates that are asked for an entry, with their settings.

    Parameters
    ----------
    files : collection of str
        Names of the entry's files, which say what it is.
    settings : mapping
        ``promotion.gates``.
    """
    from models.store import POLICY

    if POLICY in files:
        return {name: settings.get(name, {}) for name in FOR_POLICIES}
    if "model.onnx" not in files:
        return {name: tree for name, tree in settings.items() if name in FOR_FUNCTIONS}
    return dict(settings)


def judge(comparison: Comparison, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Finding]:
    """Ask every gate that ``promotion.gates`` names and that is meant for such an entry."""
    findings = {}
    for name, tree in asked_of(comparison.candidate.meta.files, settings).items():
        asked = gate(name)
        where = f"promotion.gates.{name}"
        findings[name] = asked.check(comparison, asked.Settings.parse(tree, where))
    return findings
