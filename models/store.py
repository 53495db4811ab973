"""The zoo: models kept as directories of plain files, never as pickles.

``models/zoo/<name>/`` holds ``meta.json`` (what :class:`Meta` says, with the hash of every other
file), ``model.onnx`` (input ``features`` float32 [N, d], output ``probability`` float32 [N] of
``labels[1]``), ``model.json`` (the integer form, where the model has one), ``vectors.json``
(observations with the trained model's answers), ``metrics.json`` and ``card.md``.

What was measured on one machine (:data:`BESIDE`) stands beside an entry: neither ``meta.json`` nor
its seal knows of it, so that training again on another machine gives the same entry.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

import models
from data.errors import UserError, one_line, unknown_name
from data.place import Own, building
from data.strict import Strict
from features.sbd import settings_for
from features.spec import Feature, schema_hash
from models.onnx_safe import open_session
from models.sbd.params import THRESHOLD

ZOO = Path(models.__file__).parent / "zoo"
"""Where the repository keeps its released models: ``cczoo zoo release`` alone writes there."""
TRAINED = Path("models/trained")
"""Where training leaves its models, in the directory at hand."""
BESIDE = ("certificate.json", "costs.json", "costs.md", "release.json")
"""Files of an entry that its hashes leave out: proofs, times and dates of one machine."""
NAME = r"^[A-Za-z0-9_][A-Za-z0-9 ._+-]{0,99}$"
"""Of a model: it is a file's name, and stands in generated code."""
MAX_META_BYTES = 4 << 20
MAX_BYTES = 256 << 20
"""Of one file of an entry; larger ones aren't read."""


class FeatureSpec(Strict):
    """A :class:`features.spec.Feature` as it stands in ``meta.json``."""

    name: str
    unit: str
    low: float | int
    high: float | int
    scale: int
    source: str
    doc: str


class Meta(Strict):
    """``meta.json``.

    Attributes
    ----------
    name, version : str
        The zoo's name and the entry's version.
    kind : str
        tree, forest, linear where the model has an integer form, else the estimator's name.
    family : str
        Family of features (``smartsbd``, ``smartsbd-plus``).
    features : tuple of str
        Names in the order of the model's columns.
    feature_specs : tuple of FeatureSpec
        Their units, scales and ranges as they were when the model was trained.
    feature_settings : mapping
        What they were computed with when the model was trained: every setting of their family
        (:func:`features.sbd.settings_for`).
    schema_hash : str
        ``features.spec.schema_hash`` of both.
    data_hash, git_commit, created_by : str
        Training table, commit and command that made the model.
    labels : tuple of str
        Names of class 0 and class 1; ``probability`` is of class 1.
    threshold : float
        Class 1 where the probability is above it.
    calibration, accumulation : mapping
        Settings of the trainer for verdicts over several windows.
    scaling : mapping
        Loss to integers as measured on the training table: ``rows``, ``disagreements``,
        ``disagreement_share`` and, with labels, ``accuracy_float``, ``accuracy_integer``; and
        ``float_error``, the largest error of the ONNX form's probability there.
    no_form : str
        Why the model has no integer form; empty where it has one.
    files : mapping
        Name -> SHA-256 of every other file but :data:`BESIDE`.
    seal : str
        SHA-256 of all other fields as canonical JSON.
    """

    name: str = Field(pattern=NAME)
    version: str = "1"
    kind: str
    family: str
    features: tuple[str, ...]
    feature_specs: tuple[FeatureSpec, ...]
    feature_settings: dict[str, Any] = Field(default_factory=dict)
    schema_hash: str
    data_hash: str = ""
    git_commit: str = ""
    created_by: str = ""
    labels: tuple[str, str] = ("NSB", "SB")
    threshold: float = Field(THRESHOLD, ge=0, le=1)
    calibration: dict[str, Any] = Field(default_factory=dict)
    accumulation: dict[str, Any] = Field(default_factory=dict)
    scaling: dict[str, Any] = Field(default_factory=dict)
    no_form: str = ""
    files: dict[str, str] = Field(default_factory=dict)
    seal: str = ""


@dataclass(frozen=True)
class ZooModel:
    """A model read from its directory, every file's hash checked."""

    directory: Path
    meta: Meta

    @property
    def features(self) -> tuple[Feature, ...]:
        """Specs of the model's columns, in order."""
        return tuple(Feature(**spec.model_dump()) for spec in self.meta.feature_specs)

    def read(self, name: str) -> bytes:
        """Content of one file of the entry; UserError where it can't be read."""
        try:
            return (self.directory / name).read_bytes()
        except OSError as error:
            raise UserError(
                f"{self.directory / name}: {error.strerror}: restore it or train again"
            ) from None

    def read_json(self, name: str) -> Any:
        """Content of one JSON file of the entry; UserError where it isn't one."""
        try:
            return json.loads(self.read(name))
        except (ValueError, RecursionError):
            raise UserError(
                f"{self.directory / name}: not readable as JSON: restore it or train again"
            ) from None

    def beside(self, name: str) -> bytes | None:
        """Content of one file of :data:`BESIDE`, None where the entry has none."""
        path = self.directory / name
        return path.read_bytes() if path.is_file() else None

    def check_schema(self, features: Sequence[Feature]) -> None:
        """Refuse features that aren't the ones the model was trained on.

        Raises
        ------
        UserError
            Where order, names, units, scales or ranges differ.
        """
        if schema_hash(features, self.meta.feature_settings) != self.meta.schema_hash:
            raise UserError(
                f"model {self.meta.name!r}: the features' definitions have changed since it was "
                "trained (schema hash differs): train it again"
            )

    @cached_property
    def _session(self) -> Any:
        where = str(self.directory / "model.onnx")
        try:
            return open_session(self.read("model.onnx"), where)
        except UserError:
            raise
        except Exception as error:
            # ONNX Runtime raises many unrelated types, some of them straight from C++.
            reason = one_line(str(error))
            raise UserError(f"{where}: ONNX Runtime refuses it: {reason}") from None

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Probability of ``labels[1]``, by ``model.onnx``.

        Parameters
        ----------
        table : array [N, d], polars or pandas data frame, or mapping of columns
            Observations in the features' own units; columns of a table are picked by name.

        Returns
        -------
        float64 array [N]

        Raises
        ------
        UserError
            When a column is missing.
        """
        values = self._matrix(table)
        if not len(values):
            return np.zeros(0)
        probability = self._session.run(["probability"], {"features": values.astype(np.float32)})[0]
        return np.asarray(probability, dtype=np.float64).reshape(-1)

    def predict(self, table: Any) -> NDArray[np.int64]:
        """Class of each observation (1 is ``labels[1]``), int64 [N]."""
        return (self.predict_proba(table) > self.meta.threshold).astype(np.int64)

    def _matrix(self, table: Any) -> NDArray[np.float64]:
        names = self.meta.features
        if isinstance(table, np.ndarray):
            if table.ndim != 2 or table.shape[1] != len(names):
                raise ValueError(f"an array [N, {len(names)}] was expected, not {table.shape}")
            return table.astype(np.float64)
        known = table.keys() if isinstance(table, Mapping) else table.columns
        missing = [name for name in names if name not in known]
        if missing:
            raise UserError(
                f"model {self.meta.name!r}: the table has no column {', '.join(missing)}: "
                f"compute the features again (family {self.meta.family})"
            )
        columns = [np.asarray(table[name], dtype=np.float64) for name in names]
        return np.column_stack(columns)


def sha256(content: bytes) -> str:
    """Hash of one file's content."""
    return hashlib.sha256(content).hexdigest()


def names(zoo: Path | None = None) -> list[str]:
    """Names of the zoo's models, sorted."""
    return sorted(path.parent.name for path in (zoo or ZOO).glob("*/meta.json"))


def folders(zoo: Path | None = None) -> list[str]:
    """Names of the zoo's entries, of those that have lost their ``meta.json`` too."""
    marks = ("meta.json", "model.json", "model.onnx", "vectors.json", "card.md")
    found = {path.parent.name for mark in marks for path in (zoo or ZOO).glob(f"[!._]*/{mark}")}
    return sorted(found)


def load(name: str | Path, zoo: Path | None = None) -> ZooModel:
    """Read a model by its name in the zoo or by its directory.

    Parameters
    ----------
    name : str or Path
        A zoo name, or the path of a directory with a ``meta.json``.
    zoo : Path, optional
        Another zoo than the repository's.

    Returns
    -------
    ZooModel

    Raises
    ------
    UserError
        When there is no such model (with the nearest name), or a file is missing or altered,
        ``meta.json`` included.
    """
    directory = kept = (zoo or ZOO) / str(name)
    if isinstance(name, Path) or os.sep in name or not _is_entry(directory):
        directory = Path(name)
        if not _is_entry(directory):
            if isinstance(name, Path) or os.sep in str(name):
                raise UserError(f"{directory}: no meta.json there: not a model's directory")
            if name and kept.is_dir():
                where = f"{kept}/meta.json"
                raise UserError(f"{where}: missing: restore it (git checkout) or train again")
            raise unknown_name("model", str(name), names(zoo))
    meta = _meta(directory)
    if meta.seal and meta.seal != _seal(meta, directory):
        raise UserError(f"{directory}/meta.json: altered since it was saved: restore it")
    for file, expected in meta.files.items():
        path = directory / file
        if Path(file).name != file or file == ".." or not path.is_file():
            raise UserError(one_line(f"{path}: missing: restore it (git checkout) or train again"))
        if path.stat().st_size > MAX_BYTES:
            raise UserError(one_line(f"{path}: larger than any file of a model: restore it"))
        if sha256(path.read_bytes()) != expected:
            raise UserError(f"{path}: altered since the model was saved: restore it or train again")
    model = ZooModel(directory, _with_settings(meta, f"{directory}/meta.json"))
    if schema_hash(model.features, model.meta.feature_settings) != model.meta.schema_hash:
        raise UserError(f"{directory}/meta.json: schema_hash isn't that of its features")
    if tuple(spec.name for spec in meta.feature_specs) != meta.features:
        raise UserError(f"{directory}/meta.json: features and feature_specs differ")
    return model


def save(directory: Path, meta: Mapping[str, Any], files: Mapping[str, bytes]) -> ZooModel:
    """Write an entry, whole or not at all.

    Parameters
    ----------
    directory : Path
        The entry's directory; an earlier entry there is replaced.
    meta : mapping
        Fields of :class:`Meta` without ``files`` and ``seal``.
    files : mapping
        Name -> content of every other file; those of :data:`BESIDE` are written, not hashed.

    Returns
    -------
    ZooModel
        The entry as :func:`load` reads it.

    Raises
    ------
    UserError
        When ``meta`` has wrong or missing keys.
    """
    sealed = sorted(name for name in files if name not in BESIDE)
    hashes = {name: sha256(files[name]) for name in sealed}
    fields = {"feature_settings": {}, **meta, "files": hashes}
    checked = Meta.parse(fields, f"{directory}/meta.json")
    checked = checked.model_copy(update={"seal": _seal(checked, directory)})
    text = json.dumps(checked.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"
    replace_directory(directory, {**files, "meta.json": text.encode()})
    return load(directory)


def replace_directory(
    directory: Path, files: Mapping[str, bytes], own: Own | None = None, maker: str = "cczoo"
) -> None:
    """Write a directory of files under a temporary name and move it into place.

    An interrupted call leaves the earlier directory as it was.

    Parameters
    ----------
    directory : Path
        The directory; an earlier one is replaced if its record lists all that it holds.
    files : mapping
        Name -> content.
    own, maker
        As for `data.place.check_own`; by default the record is an entry's ``meta.json``.

    Raises
    ------
    UserError
        When the directory holds something else, or can't be written.
    """
    with building(directory, own or own_files, maker) as fresh:
        for name, content in files.items():
            (fresh / name).write_bytes(content)


def own_files(directory: Path) -> set[str]:
    """Names of what an entry's sealed ``meta.json`` lists, and is as it was saved.

    Empty when there is none that is readable and whose seal is right. A file that was altered
    since is somebody's work.
    """
    try:
        meta = _meta(directory)
        if meta.seal and meta.seal != _seal(meta, directory):
            return set()
    except UserError:
        return set()
    return {"meta.json", *BESIDE, *unaltered(directory, meta.files)}


def unaltered(directory: Path, files: Mapping[str, str]) -> set[str]:
    """Those of a record's files (name -> SHA-256) that are plain files with the listed hash."""
    found = set()
    for name, expected in files.items():
        path = directory / name
        if Path(name).name == name and not path.is_symlink() and path.is_file():
            with suppress(OSError), path.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() == expected:
                    found.add(name)
    return found


def _seal(meta: Meta, directory: Path) -> str:
    # An entry of the time before settings were kept was sealed without the field.
    unknown = {"feature_settings"} - meta.model_fields_set
    try:
        tree = meta.model_dump(mode="json", exclude={"seal", *unknown})
        return sha256(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode())
    except (ValueError, RecursionError):
        raise UserError(f"{directory}/meta.json: nested too deeply: restore it") from None


def _with_settings(meta: Meta, where: str) -> Meta:
    """All settings of its features, also of an entry that was written before they were kept.

    Of such an entry they are taken to be the defaults, and its hash was of descriptions too: it
    gets the one that it would have now.
    """
    settings = settings_for(meta.family, meta.feature_settings, f"{where}: feature_settings")
    if "feature_settings" in meta.model_fields_set:
        return meta.model_copy(update={"feature_settings": settings})
    features = [Feature(**spec.model_dump()) for spec in meta.feature_specs]
    known = {"feature_settings": settings, "schema_hash": schema_hash(features, settings)}
    return meta.model_copy(update=known)


def _is_entry(directory: Path) -> bool:
    return (directory / "meta.json").is_file()


def _meta(directory: Path) -> Meta:
    path = directory / "meta.json"
    try:
        if path.stat().st_size > MAX_META_BYTES:
            raise ValueError("larger than any model's")
        tree = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(one_line(f"{path}: not readable as JSON: {error}: restore it")) from None
    if not isinstance(tree, Mapping):
        raise UserError(f"{path}: an object was expected at the top")
    try:
        return Meta.parse(tree, str(path))
    except UserError as error:
        raise UserError(one_line(str(error))) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} isn't a number")
