"""Files that one step leaves for later ones: each has one schema, and is read and written here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError, WrapSerializer

from data.errors import UserError
from data.files import write_text
from data.strict import Strict

T = TypeVar("T")

OrEmpty = Annotated[
    T | None,
    BeforeValidator(lambda value: None if value == {} else value),
    WrapSerializer(lambda value, inner: {} if value is None else inner(value)),
]
"""Something that could not be made from too few data: an empty mapping in the file, None here."""


class Result(Strict):
    """Base of what result files hold: frozen, and no key that isn't a field."""


@dataclass(frozen=True)
class ResultFile(Generic[T]):
    """One kind of result file.

    Attributes
    ----------
    name : str
        The file's name in the folder of its step.
    content : type
        What it holds: a :class:`Result`, or a tuple or dict of them.
    made_by : str
        The command that writes it, for messages.
    """

    name: str
    content: type[T]
    made_by: str

    def write(self, folder: Path, value: object) -> T:
        """Write a result, whole or not at all; see :meth:`write_at`."""
        return self.write_at(folder / self.name, value)

    def write_at(self, path: Path, value: object) -> T:
        """Write a result under another name, whole or not at all.

        Parameters
        ----------
        path : Path
        value : object
            Plain data as the schema has it, or results read before; NaN is written as null.

        Returns
        -------
        T
            What a later step reads.
        """
        tree = plain(value)
        found = self._adapter.validate_python(tree)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")
        return found

    def read(self, folder: Path) -> T:
        """Read a result; see :meth:`read_at`."""
        return self.read_at(folder / self.name)

    def read_at(self, path: Path) -> T:
        """Read a result that has another name.

        Raises
        ------
        UserError
            When the file is missing, isn't JSON or lacks what this version of cczoo writes.
        """
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(f"{path}: missing: make it with `{self.made_by}`") from None
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{path}: not JSON: {error}: make it again with `{self.made_by}`"
            ) from None
        return self.parse(tree, str(path))

    def parse(self, tree: object, where: str) -> T:
        """Check what a file holds.

        Parameters
        ----------
        tree : object
            As read from JSON.
        where : str
            The file's name, for the message.

        Raises
        ------
        UserError
            When it isn't a result of this kind; one line, with the first thing that differs.
        """
        try:
            return self._adapter.validate_python(tree)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the whole"
            what = first["msg"].removeprefix("Value error, ")
            raise UserError(
                f"{where}: of another version of cczoo: {place}: {what[:1].lower()}{what[1:]}: "
                f"make it again with `{self.made_by}`"
            ) from None

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.content)


def plain(value: Any) -> Any:
    """JSON-ready: models as dicts, NaN as null, numpy scalars as numbers."""
    if isinstance(value, BaseModel):
        # A key that a result's file didn't have stays away; settings are told whole.
        value = value.model_dump(by_alias=True, exclude_unset=isinstance(value, Result))
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    return value
