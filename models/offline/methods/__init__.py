"""Methods that learn from logged decisions: a new one is a file and a line."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from data.errors import unknown_name

if TYPE_CHECKING:
    from models.offline.methods.base import Method
    from models.offline.params import Offline


@dataclass(frozen=True)
class Line:
    """A method's line.

    Attributes
    ----------
    module : str
        ``module:class`` of its `models.offline.methods.base.Method`.
    params : str
        ``module:class`` of its settings.
    summary : str
        What it is, in a few words.
    """

    module: str
    params: str
    summary: str

    def load(self) -> type[Method]:
        """What learns, which imports torch."""
        return cast("type[Method]", _imported(self.module))

    def settings(self) -> type[Offline]:
        """Type of its settings."""
        return cast("type[Offline]", _imported(self.params))


METHODS: dict[str, Line] = {
    "bc": Line(
        "models.offline.methods.cloning:CloningMethod",
        "models.offline.params:Cloning",
        "behaviour cloning: does what the logs do",
    ),
    "cql": Line(
        "models.offline.methods.conservative:ConservativeMethod",
        "models.offline.params:Conservative",
        "discrete CQL: Q learning that keeps what wasn't logged low",
    ),
    "iql": Line(
        "models.offline.methods.implicit:ImplicitMethod",
        "models.offline.params:Implicit",
        "IQL: clones logged actions the more, the better they did",
    ),
    "ensemble": Line(
        "models.offline.methods.pessimistic:PessimisticMethod",
        "models.offline.params:Pessimistic",
        "an ensemble of Q networks that acts by its lower confidence bound",
    ),
}
"""Name, as in ``cczoo train offline --method NAME``, -> method."""


def method(name: str) -> Line:
    """A method by its name.

    Raises
    ------
    UserError
        With the nearest name, where there is none.
    """
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def settings(name: str, changes: dict[str, Any]) -> Offline:
    """A method's settings, with changes.

    Raises
    ------
    UserError
        When one has no such key or value.
    """
    return method(name).settings().parse(changes, f"train offline --method {name}")


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
