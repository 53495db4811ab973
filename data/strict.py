"""Frozen settings that refuse unknown keys by naming the nearest correct one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from data import yaml_text
from data.errors import UserError

# With its first model pydantic looks for plugins in every installed package; cczoo has none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

LONGEST = 60
"""Characters of a wrong value that a message repeats."""


class Strict(BaseModel):
    """Base of every settings model: frozen, unknown keys refused."""

    # A command builds the validators of the settings that it reads, not of all that it imports.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def parse(cls, tree: Self | Mapping[str, Any], where: str) -> Self:
        """Validate a plain tree.

        Parameters
        ----------
        tree : mapping
            As read from YAML or JSON; settings that are valid already are passed on.
        where : str
            The file's name, for the message.

        Returns
        -------
        Self
            The validated settings.

        Raises
        ------
        UserError
            One line per mistake: the key's full path and what is wrong with it.
        """
        try:
            return cls.model_validate(tree)
        except ValidationError as error:
            lines = [_explain(cls, item) for item in error.errors()]
            raise UserError(f"{where}: " + "; ".join(lines)) from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and validate a YAML file.

        Raises
        ------
        UserError
            When the file is missing, isn't YAML or doesn't validate.
        """
        tree = yaml_text.read(path)
        if not isinstance(tree, Mapping):
            raise UserError(f"{path}: a mapping of settings was expected at the top")
        return cls.parse(tree, str(path))


def _explain(model: type[BaseModel], item: Any) -> str:
    location = [str(part) for part in item["loc"]]
    path = ".".join(location)
    if item["type"] == "value_error":  # the text is from a model of ours and names the key
        return f"{path}: {item['ctx']['error']}" if path else str(item["ctx"]["error"])
    if item["type"] != "extra_forbidden":
        given = item.get("input")
        value = f", not {given!r}" if isinstance(given, (bool, int, float, str)) else ""
        return f"{path}: {item['msg'].lower()}{value if len(value) <= LONGEST else ''}"
    keys = _keys(model)
    near = difflib.get_close_matches(location[-1], sorted(keys), n=1)
    # The very key, but of another part of the tree: say where it stands.
    meant = [keys[key] if key == location[-1] else key for key in near]
    hint = f", did you mean {meant[0]!r}?" if meant else ""
    return f"{path}: unknown key{hint}"


def _keys(model: type[BaseModel]) -> dict[str, str]:
    """All key names of a model and of the models nested in it -> where they stand first."""
    keys: dict[str, str] = {}
    for name, field in model.model_fields.items():
        keys.setdefault(name, name)
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, BaseModel):
                for key, place in _keys(part).items():
                    keys.setdefault(key, f"{name}.{place}")
    return keys
