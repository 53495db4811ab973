"""The zoo: models kept as directories of plain files, never as pickles.

``models/zoo/<name>/`` holds ``meta.json`` (what :class:`models.meta.Meta` says, with the hash
of every other file), ``model.onnx`` (input ``features`` float32 [N, d], output ``probability``
float32 [N] of ``labels[1]`` or ``scores`` float32 [N, labels]), ``model.json`` (the integer form,
where the model has one), ``vectors.json`` (observations with the trained model's answers),
``metrics.json`` and ``card.md``.

What was measured on one machine (:data:`BESIDE`) stands beside an entry: neither ``meta.json`` nor
its checksum knows of it, so that training again on another machine gives the same entry.
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
from typing import TYPE_CHECKING, Any

import models
from data.errors import UserError, one_line, unknown_name
from data.place import Own, building
from features.spec import Feature, schema_hash
from models.meta import Meta, checksum_of, read_meta, with_settings
from models.onnx_safe import open_session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ZOO = Path(models.__file__).parent / "zoo"
"""Where the repository keeps its released models: ``cczoo zoo release`` alone writes there."""
TRAINED = Path("models/trained")
"""Where training leaves its models, in the directory at hand."""
BESIDE = ("certificate.json", "costs.json", "costs.md", "release.json")
"""Files of an entry that its hashes leave out: proofs, times and dates of one machine."""
POLICY = "policy.json"
"""File of an entry that makes it a trained policy (`models.policies`), which nothing exports."""
MAX_BYTES = 256 << 20
"""Of one file of an entry; larger ones aren't read."""


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
            When a column is missing, or the model answers with a score per label.
        """
        import numpy as np

        if self.several:
            raise UserError(
                f"model {self.meta.name!r}: answers with a score for each of its labels, not with "
                "a probability: give a model of two classes"
            )
        values = self._matrix(table)
        if not len(values):
            return np.zeros(0)
        probability = self._session.run(["probability"], {"features": values.astype(np.float32)})[0]
        return np.asarray(probability, dtype=np.float64).reshape(-1)

    def answers(self, table: Any) -> NDArray[np.float64]:
        """What ``model.onnx`` answers: P(``labels[1]``) [N], or a score per label [N, labels].

        ``table`` as for :meth:`predict_proba`.
        """
        import numpy as np

        if not self.several:
            return self.predict_proba(table)
        values = self._matrix(table)
        if not len(values):
            return np.zeros((0, len(self.meta.labels)))
        scores = self._session.run(["scores"], {"features": values.astype(np.float32)})[0]
        return np.asarray(scores, dtype=np.float64)

    @property
    def several(self) -> bool:
        """Whether there is a score per label, and not one probability."""
        return len(self.meta.labels) != 2 or self.meta.output.kind == "scores"

    def predict(self, table: Any) -> NDArray[np.int64]:
        """Index of each observation's label, int64 [N]: the first largest score's."""
        import numpy as np

        answers = self.answers(table)
        if self.several:
            return np.asarray(answers.argmax(axis=1), dtype=np.int64)
        return (answers > self.meta.threshold).astype(np.int64)

    def _matrix(self, table: Any) -> NDArray[np.float64]:
        import numpy as np

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
    """Names of the zoo's models that are exported, sorted: all but the trained policies."""
    found = (path.parent for path in (zoo or ZOO).glob("*/meta.json"))
    return sorted(folder.name for folder in found if not (folder / POLICY).is_file())


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
    meta = read_meta(directory)
    if meta.checksum and meta.checksum != checksum_of(meta, directory):
        raise UserError(f"{directory}/meta.json: altered since it was saved: restore it")
    for file, expected in meta.files.items():
        path = directory / file
        if Path(file).name != file or file == ".." or not path.is_file():
            raise UserError(one_line(f"{path}: missing: restore it (git checkout) or train again"))
        if path.stat().st_size > MAX_BYTES:
            raise UserError(one_line(f"{path}: larger than any file of a model: restore it"))
        if sha256(path.read_bytes()) != expected:
            raise UserError(f"{path}: altered since the model was saved: restore it or train again")
    model = ZooModel(directory, with_settings(meta, f"{directory}/meta.json"))
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
        Fields of :class:`models.meta.Meta` without ``files`` and the checksum.
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
    replace_directory(directory, written_files(meta, files, str(directory)))
    return load(directory)


def written_files(
    meta: Mapping[str, Any], files: Mapping[str, bytes], where: str
) -> dict[str, bytes]:
    """An entry's files as they are written: those given and ``meta.json`` with hashes and checksum.

    Parameters
    ----------
    meta, files : mapping
        As for :func:`save`.
    where : str
        Of the entry, for the message.

    Raises
    ------
    UserError
        When ``meta`` has wrong or missing keys.
    """
    hashes = {name: sha256(files[name]) for name in sorted(files) if name not in BESIDE}
    fields = {"feature_settings": {}, **meta, "files": hashes}
    checked = Meta.parse(fields, f"{where}/meta.json")
    checked = checked.model_copy(update={"checksum": checksum_of(checked, Path(where))})
    text = json.dumps(checked.document(), indent=2, sort_keys=True) + "\n"
    return {**files, "meta.json": text.encode()}


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
    """Names of what an entry's ``meta.json`` lists, and is as it was saved.

    Empty when there is none that is readable and whose checksum is right. A file that was altered
    since is somebody's work.
    """
    try:
        meta = read_meta(directory)
        if meta.checksum and meta.checksum != checksum_of(meta, directory):
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


def _is_entry(directory: Path) -> bool:
    return (directory / "meta.json").is_file()
