"""A bundle: the files of its targets and ``manifest.json``, which says what they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.certificate import CERTIFICATE
from export.document import canonical, dumps, loads, model_hash, parse_json
from export.fixed import limits, to_integers
from export.ir import Form
from export.onnx_run import decided
from export.params import Options
from export.source import Source
from export.targets import emit, stated
from features.spec import Feature, schema_hash

FORMAT = "cczoo-bundle"
VERSION = 2
MANIFEST = "manifest.json"
FORM = "model.json"
BESIDE = (CERTIFICATE, *(f"{MANIFEST}.{kind}" for kind in ("minisig", "sig", "asc")))
"""What may stand beside a manifest: the proof, and signatures."""
STORED_VECTORS = 64
"""At most so many in a manifest, which people read; verification makes thousands more."""


@dataclass(frozen=True)
class Bundle:
    """A bundle whose manifest and hashes were found right.

    Attributes
    ----------
    directory : Path
    manifest : dict
    form : Form or None
        The reference; None for models that exist only as ONNX.
    integers, values : arrays [n, d]
        Stored vectors.
    """

    directory: Path
    manifest: dict[str, Any]
    form: Form | None
    features: tuple[Feature, ...]
    integers: NDArray[np.int64]
    values: NDArray[np.float64]
    probability: NDArray[np.float64]

    def files(self, target: str) -> list[Path]:
        """Paths of one target's files."""
        return [self.directory / name for name in self.manifest["targets"][target]["files"]]

    @property
    def identifier(self) -> str:
        """Prefix of the names in generated code."""
        return str(self.manifest["identifier"])

    @property
    def settings(self) -> dict[str, Any]:
        """What the features are computed with."""
        return dict(self.manifest["feature_settings"])

    @property
    def threshold(self) -> float:
        """On the probability of ``labels[1]``."""
        return float(self.manifest["threshold"])


class Broken(Exception):
    """The bundle isn't what its manifest says."""


def bundle_files(
    source: Source, targets: Sequence[str], options: Options, created_by: str
) -> dict[str, bytes]:
    """All files of a bundle.

    Parameters
    ----------
    source : Source
    targets : sequence of str
        Names in :data:`export.targets.TARGETS`.
    options : Options
    created_by : str
        The command, for the manifest.

    Returns
    -------
    dict
        File name -> content, ``manifest.json`` included.

    Raises
    ------
    UserError
        For unknown targets and targets that can't carry the model.
    """
    files: dict[str, bytes] = {}
    listed: dict[str, Any] = {}
    if source.form is not None:
        files[FORM] = dumps(source.form).encode()
    for name in dict.fromkeys(targets):
        made = emit(name, source, options)
        files |= made
        listed[name] = {"files": sorted(made), **stated(name, source, options, made)}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "name": source.name,
        "identifier": source.identifier,
        "model_version": source.version,
        "family": source.family,
        "kind": source.kind,
        "labels": list(source.labels),
        "threshold": source.threshold,
        "cut": None if source.form is None else source.form.cut,
        "features": _features(source.features),
        "feature_settings": source.feature_settings,
        "schema_hash": source.schema_hash,
        "model_hash": source.model_hash,
        "source_model_hash": source.source_model_hash or source.model_hash,
        "passes": list(source.passes),
        "targets": listed,
        "files": {name: _sha256(content) for name, content in files.items()},
        "vectors": _vectors(source),
        "scaling": source.scaling,
        "created_by": created_by,
    }
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    files[MANIFEST] = (canonical(manifest) + "\n").encode()
    return files


def own_files(directory: Path) -> set[str]:
    """Names of what a bundle's manifest lists, and of what cczoo puts beside it.

    Returns
    -------
    set of str
        Empty when there is no readable manifest.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        listed = [
            *manifest["files"],
            *(f for t in manifest["targets"].values() for f in t["files"]),
        ]
        ours = manifest["format"] == FORMAT
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return set()
    return {MANIFEST, *BESIDE, *map(str, listed)} if ours else set()


def read_bundle(directory: Path) -> Bundle:
    """Read a bundle and check every hash in it.

    Raises
    ------
    UserError
        When the directory holds no readable manifest.
    Broken
        When any file, the manifest included, isn't as it was exported, or one was added.
    """
    path = directory / MANIFEST
    try:
        manifest = parse_json(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}: give a directory made by cczoo export"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UserError(f"{path}: not a bundle's manifest: give a directory made by cczoo export")
    claimed = manifest.pop("manifest_hash", None)
    if claimed != _sha256(canonical(manifest).encode()):
        raise Broken(f"{MANIFEST}: altered since export")
    if manifest.get("version") != VERSION:
        raise Broken(f"{MANIFEST}: version {VERSION} expected: export with this cczoo")
    # From here on the manifest is as some cczoo wrote it, so its keys are there.
    for name, expected in manifest["files"].items():
        file = directory / name
        if Path(name).name != name or not file.is_file():
            raise Broken(f"{name}: missing")
        if _sha256(file.read_bytes()) != expected:
            raise Broken(f"{name}: altered since export")
    # An unlisted file is one that a build in this directory could pick up: a header, a bytecode.
    known = {*manifest["files"], MANIFEST, CERTIFICATE}
    added = sorted(path.name for path in directory.iterdir() if path.name not in known)
    if added:
        raise Broken(f"{added[0]}: isn't of this bundle: remove it, and build elsewhere")
    form = None
    features = tuple(Feature(**item["spec"]) for item in manifest["features"])
    if FORM in manifest["files"]:
        form = loads((directory / FORM).read_bytes(), FORM)
        if model_hash(form) != manifest["model_hash"] or form.features != features:
            raise Broken(f"{FORM}: not the model that the manifest describes")
    if schema_hash(features, manifest["feature_settings"]) != manifest["schema_hash"]:
        raise Broken(f"{MANIFEST}: schema_hash isn't that of its features and settings")
    rows = manifest["vectors"]
    d = len(features)
    return Bundle(
        directory,
        manifest,
        form,
        features,
        np.array([row["features"] for row in rows], dtype=np.int64).reshape(-1, d),
        np.array([row["values"] for row in rows], dtype=np.float64).reshape(-1, d),
        np.array([row["probability"] for row in rows], dtype=np.float64),
    )


def _features(features: Sequence[Feature]) -> list[dict[str, Any]]:
    low, high = limits(features)
    return [
        {"index": i, "spec": asdict(f), "low_integer": int(low[i]), "high_integer": int(high[i])}
        for i, f in enumerate(features)
    ]


def _vectors(source: Source) -> list[dict[str, Any]]:
    values = source.values[:STORED_VECTORS]
    probability = source.probability[:STORED_VECTORS]
    integers = to_integers(values, source.features)
    rows: list[dict[str, Any]] = []
    answers = None if source.form is None else source.form.evaluate(integers)
    for i, row in enumerate(values):
        item: dict[str, Any] = {
            "values": [float(v) for v in row],
            "features": [int(k) for k in integers[i]],
            "probability": probability[i].tolist(),
            "class": int(decided(probability[i : i + 1], source.threshold)[0]),
        }
        if answers is not None:
            item |= {"class": int(answers.classes[i]), "score": answers.scores[i].tolist()}
        rows.append(item)
    return rows


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
