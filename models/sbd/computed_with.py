"""What a table's features were computed with, and whether a model's were computed so too."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError

if TYPE_CHECKING:
    from features.params import SbdParams
    from models.store import ZooModel

KEY = "cczoo.settings"
"""Of a Parquet file's metadata: ``features.sbd`` as JSON."""


def recorded(what: str, params: SbdParams) -> dict[str, str]:
    """Metadata of a table: its settings, and the schema hash of each of its families.

    Parameters
    ----------
    what : str
        Key of `features.sbd.TABLES`.
    params : SbdParams
        That it was computed with.
    """
    from features.sbd import TABLES

    hashes = {f"cczoo.{family}": _hash(family, params) for family in TABLES[what]}
    return {KEY: json.dumps(params.model_dump()), **hashes}


def settings_of(path: Path) -> SbdParams:
    """Settings of windows that a features table was computed with.

    A table that doesn't say is taken to be of the defaults, and a note says so: made by hand, it
    can't be computed anew. (One that an earlier version made is refused by :func:`check`, for its
    schema hash.)

    Parameters
    ----------
    path : Path
        A Parquet file, or a directory of them.

    Raises
    ------
    UserError
        When they can't be read, or files of a directory were computed with different ones.
    """
    return _settings(_metadata(path))


def _settings(metadata: Mapping[Path, Mapping[str, str]]) -> SbdParams:
    """Settings that the metadata of one or several files agree on."""
    from features.params import SbdParams
    from features.sbd import differing

    files = list(metadata)
    found: SbdParams | None = None
    silent = False
    for file, said in metadata.items():
        text = said.get(KEY)
        if text is None and not silent:
            silent = True  # one note is enough
            print(
                f"{file}: doesn't say what its features were computed with: taken to be the "
                "default settings (`cczoo features` records them)",
                file=sys.stderr,
            )
        own = SbdParams.parse(_parsed(text, file), f"{file}: {KEY}")
        if found is not None and own != found:
            names = ", ".join(differing(own.model_dump(), found.model_dump()))
            raise UserError(
                f"{file}: computed with another {names} than {files[0]}: compute both anew with "
                "the same settings (`cczoo features`)"
            )
        found = own
    return found or SbdParams()


def check(path: Path, model: ZooModel) -> None:
    """Refuse a table that isn't what a model was trained for.

    Parameters
    ----------
    path : Path
        A features table.
    model : ZooModel

    Raises
    ------
    UserError
        Where its features were computed with other settings, or are defined otherwise since the
        model was trained or the table was made.
    """
    from features.sbd import differing, features_of, table_of
    from models.store import ZOO

    meta = model.meta
    table = table_of(meta.family)
    if table is None:
        return
    specs = {feature.name: feature for feature in features_of(meta.family)}
    if all(name in specs for name in meta.features):
        model.check_schema([specs[name] for name in meta.features])
    metadata = _metadata(path)
    params = _settings(metadata)
    made, meant = params.model_dump(), meta.feature_settings
    if names := differing(made, meant):
        name = meta.name if model.directory.parent == ZOO else str(model.directory)
        raise UserError(
            f"{path}: computed with {_told(made, names)}, but {meta.name} was trained with "
            f"{_told(meant, names)}: compute it anew with `cczoo features {table} --model {name} "
            "--events DIR --out FILE`"
        )
    family = f"cczoo.{meta.family}"
    if metadata.get(path, {}).get(family) not in (None, _hash(meta.family, params)):
        raise UserError(
            f"{path}: made by an earlier version or with other definitions of the features (schema "
            f"hash of {meta.family} differs): make it again with `cczoo features {table}`"
        )


def described(settings: Mapping[str, Any]) -> str:
    """Settings for people, in a card."""
    return _told(settings, list(settings)) or "none"


def _told(settings: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {settings.get(name, 'unset')}" for name in names)


def _hash(family: str, params: SbdParams) -> str:
    from features.sbd import features_of, settings_for
    from features.spec import schema_hash

    return schema_hash(features_of(family), settings_for(family, params))


def _metadata(path: Path) -> dict[Path, Mapping[str, str]]:
    """What a Parquet file, or each of a directory, says of itself."""
    import polars as pl

    found: dict[Path, Mapping[str, str]] = {}
    for file in sorted(path.rglob("*.parquet")) if path.is_dir() else [path]:
        try:
            found[file] = pl.read_parquet_metadata(file)
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{file}: not a readable Parquet file: {reason}") from None
    return found


def _parsed(text: str | None, path: Path) -> Any:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{path}: its {KEY} isn't a JSON object: make it again: `cczoo features`")
    return found
