"""Which settings make a wanted quality most probable, from the table that an entry holds.

Nothing but Python's own library is imported: an answer takes milliseconds from a cold start. There
is no dataclass here, for these import `inspect`, which takes longer than all else.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from data.errors import UserError, unknown_name

FILE = "advice.json"
ZOO = Path(__file__).resolve().parents[1] / "zoo"
DEFAULT = "qos-bn"


class Choice(NamedTuple):
    """Settings, by name, and the probability of the target with them."""

    settings: Mapping[str, str]
    probability: float


class Table(NamedTuple):
    """Content of ``advice.json``."""

    content: Mapping[str, Any]

    @property
    def variables(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> unit, group, values and borders."""
        found: Mapping[str, Mapping[str, Any]] = self.content["variables"]
        return found

    def checked(self, asked: Mapping[str, str], what: str) -> dict[str, int]:
        """Places of the values asked for.

        Raises
        ------
        UserError
            For an unknown variable or value, with the known ones.
        """
        found = {}
        for name, value in asked.items():
            if name not in self.variables:
                problem = unknown_name("variable", name, self.variables)
                raise UserError(f"{what}: {problem} (known: {', '.join(self.variables)})")
            values = self.variables[name]["values"]
            if value not in values:
                problem = unknown_name(f"value of {name}", value, values)
                raise UserError(f"{what}: {problem} (known: {', '.join(values)})")
            found[name] = values.index(value)
        return found

    def ranked(self, target: Mapping[str, str], given: Mapping[str, str]) -> list[Choice]:
        """All settings that fit what is given, the most probable to reach the target first.

        Parameters
        ----------
        target : mapping
            Variable -> value, of qualities and runtime contexts.
        given : mapping
            What is known: settings that can't be chosen, or what has been observed.

        Raises
        ------
        UserError
            For unknown names, a target that is a setting or is given, or evidence that no session
            of the model's training comes near.
        """
        wanted, known = self.checked(target, "--target"), self.checked(given, "--given")
        if not wanted:
            raise UserError("--target: nothing asked for: give --target psnr=good,buffer=high")
        groups = {name: one["group"] for name, one in self.variables.items()}
        for name in wanted:
            if groups[name] == "setting":
                raise UserError(f"--target: {name} is a setting: say --given {name}={target[name]}")
            if name in known:
                raise UserError(f"--given: {name} is asked for by --target: leave it out of one")
        chosen = [name for name in groups if groups[name] == "setting"]
        rest = [name for name in groups if groups[name] != "setting"]
        fits, hits = self._places(rest, known), self._places(rest, {**known, **wanted})
        found = []
        counts = [range(len(self.variables[name]["values"])) for name in chosen]
        for row, place in zip(self.content["table"], itertools.product(*counts), strict=True):
            settings = dict(zip(chosen, place, strict=True))
            if any(known.get(name, value) != value for name, value in settings.items()):
                continue
            likely = sum(row[i] for i in fits)
            if likely > 0:
                words = {name: self.variables[name]["values"][v] for name, v in settings.items()}
                found.append(Choice(words, sum(row[i] for i in hits) / likely))
        if not found:
            evidence = ", ".join(f"{name}={value}" for name, value in given.items())
            raise UserError(f"--given {evidence}: impossible by the model: leave something out")
        return sorted(found, key=lambda one: -one.probability)

    def _places(self, rest: list[str], fixed: Mapping[str, int]) -> list[int]:
        """Places in a row of the table of all combinations that have the fixed values."""
        places = [0]
        for name in rest:
            count = len(self.variables[name]["values"])
            values = [fixed[name]] if name in fixed else range(count)
            places = [place * count + value for place in places for value in values]
        return places


def load(model: str = DEFAULT) -> Table:
    """Read an entry's table; its hash is checked against the entry's ``meta.json``.

    Parameters
    ----------
    model : str
        A name in the zoo, or an entry's directory.

    Raises
    ------
    UserError
        When there is no such entry, it has no table, or the table was altered.
    """
    folder = ZOO / model if (ZOO / model / "meta.json").is_file() else Path(model)
    path = folder / FILE
    try:
        expected = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        known = sorted(found.parent.name for found in ZOO.glob(f"*/{FILE}"))
        raise unknown_name("model with advice", model, known) from None
    if FILE not in expected:
        raise UserError(f"{folder}: it has no {FILE}: give a model of the family qos")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: restore it or train again") from None
    if hashlib.sha256(text).hexdigest() != expected[FILE]:
        raise UserError(f"{path}: altered since the model was saved: restore it or train again")
    return Table(json.loads(text))


def pairs(text: str | None, flag: str) -> dict[str, str]:
    """``psnr=good,buffer=high`` as a mapping.

    Raises
    ------
    UserError
        When it isn't written so, or names a variable twice with different values.
    """
    found: dict[str, str] = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise UserError(f"{flag} {part}: NAME=VALUE was expected, such as psnr=good")
        if found.get(name, value) != value:
            raise UserError(f"{flag}: {name} can't be both {found[name]} and {value}")
        found[name] = value
    return found
