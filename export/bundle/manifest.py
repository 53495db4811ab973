"""Writes and reads a bundle: its targets' files and ``manifest.json``, which describes them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError, one_line
from export.bundle.certificate import CERTIFICATE
from export.bundle.manifest_schema import FORMAT, STORED_VECTORS, VERSION, Manifest
from export.bundle.plain_files import Broken, entries, read_plain
from export.bundle.signature import MAX_BYTES, SIGNATURE, signer_of
from export.document import canonical, dumps, loads, model_hash, parse_json
from export.fixed import limits, to_integers
from export.ir import Form
from export.onnx.run import decided
from export.params import Options
from export.source import Source
from export.targets import emit, lowered, stated
from features.sbd import settings_for
from features.spec import Feature, schema_hash
from models.output import CLASSES, Output
from models.store import unaltered

MANIFEST = "manifest.json"
FORM = "model.json"
MAX_MANIFEST_BYTES = 8 << 20


@dataclass(frozen=True)
class Bundle:
    """An intact bundle: its files are what its manifest says.

    Attributes
    ----------
    directory : Path
    manifest : dict
    form : Form or None
        The reference; None for models that exist only as ONNX.
    integers, values : int64 array [N, d] and float64 array [N, d]
        Stored vectors, scaled and in the features' own units.
    probability : float64 array [N] or [N, labels]
        The trained model's answers on them.
    contents : dict
        File name -> content, as it was when its hash was found right.
    manifest_bytes : bytes
        ``manifest.json`` as it was read.
    signer : dict or None
        Who signed it, of :func:`export.bundle.signature.signer_of`; None if nobody asked.
    """

    directory: Path
    manifest: dict[str, Any]
    form: Form | None
    features: tuple[Feature, ...]
    integers: NDArray[np.int64]
    values: NDArray[np.float64]
    probability: NDArray[np.float64]
    contents: dict[str, bytes]
    manifest_bytes: bytes
    signer: dict[str, str] | None = None

    def copied(self, directory: Path) -> Bundle:
        """The same bundle in another, new directory: what was found intact is built there."""
        directory.mkdir()
        for name, content in self.contents.items():
            (directory / name).write_bytes(content)
        return dataclasses.replace(self, directory=directory)

    def files(self, target: str) -> list[Path]:
        """Paths of one target's files."""
        return [self.directory / name for name in self.manifest["targets"][target]["files"]]

    @property
    def identifier(self) -> str:
        """Prefix of the names in generated code."""
        return str(self.manifest["identifier"])

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that the features are computed with."""
        return dict(self.manifest["feature_settings"])

    @property
    def output(self) -> Output:
        """What its answers are."""
        return Output(**self.manifest.get("output", {}))

    @property
    def threshold(self) -> float:
        """Decision threshold on the probability of ``labels[1]``."""
        return float(self.manifest["threshold"])


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
    source = lowered(source, targets)
    if wrong := _settings_problem(source.family, source.feature_settings):
        raise UserError(f"{source.name}: {wrong}: correct the model's settings or its family")
    files: dict[str, bytes] = {}
    listed: dict[str, Any] = {}
    if source.form is not None:
        files[FORM] = dumps(source.form).encode()
    for name in dict.fromkeys(targets):
        made = emit(name, source, options)
        if other := [file for file in made if files.get(file, made[file]) != made[file]]:
            raise UserError(
                f"{name}: another target has a file {other[0]} too: export it to its own --out"
            )
        files |= made
        listed[name] = {"files": sorted(made), **stated(name, source, options, made)}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "cczoo_version": version("cczoo"),
        "name": source.name,
        "identifier": source.identifier,
        "model_version": source.version,
        "family": source.family,
        "kind": source.kind,
        "labels": list(source.labels),
        "threshold": source.threshold,
        **({} if source.output == CLASSES else {"output": source.output.model_dump(mode="json")}),
        **({"verdicts": source.verdicts} if source.verdicts else {}),
        "cut": None if source.form is None else source.form.decision_threshold,
        "features": _features(source.features),
        "feature_settings": source.feature_settings,
        "schema_hash": source.schema_hash,
        "model_hash": source.model_hash,
        "source_model_hash": source.source_model_hash or source.model_hash,
        "passes": list(source.passes),
        "options": options.model_dump(mode="json"),
        "targets": listed,
        "files": {name: _sha256(content) for name, content in files.items()},
        "vectors": _vectors(source),
        "scaling": source.quantization_error,
        "created_by": created_by,
    }
    checked = json.loads(canonical(manifest))
    Manifest.parse(checked, f"{source.name!r} can't be exported")
    manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
    files[MANIFEST] = (canonical(manifest) + "\n").encode()
    return files


def own_files(directory: Path) -> set[str]:
    """Names of the files that a manifest lists, if they are as exported, and of cczoo's beside it.

    Returns
    -------
    set of str
        Empty when there is no readable manifest whose own hash is right. A listed file that was
        altered since is somebody's work.
    """
    path = directory / MANIFEST
    try:
        manifest = parse_json(read_plain(path, MAX_MANIFEST_BYTES), str(path))
        claimed = manifest.pop("manifest_hash")
        if manifest["format"] != FORMAT or claimed != _sha256(canonical(manifest).encode()):
            return set()
        return {MANIFEST, CERTIFICATE, SIGNATURE, *unaltered(directory, manifest["files"])}
    except (OSError, UserError, Broken, ValueError, RecursionError):
        return set()
    except (LookupError, TypeError, AttributeError):
        return set()


def read_manifest(content: bytes, where: str) -> dict[str, Any]:
    """A manifest whose own hash and every field are right.

    Parameters
    ----------
    content : bytes
        Of ``manifest.json``.
    where : str
        Its path, for messages.

    Raises
    ------
    UserError
        When it isn't a bundle's manifest at all.
    Broken
        When it was altered, is of another version or holds what no export writes.
    """
    manifest = parse_json(content, where)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UserError(f"{where}: not a bundle's manifest: give a directory made by cczoo export")
    claimed = manifest.pop("manifest_hash", None)
    try:
        computed = _sha256(canonical(manifest).encode())
    except RecursionError:
        raise UserError(f"{where}: nested too deeply: not a bundle's manifest") from None
    if claimed != computed:
        raise Broken(f"{MANIFEST}: altered since export")
    if manifest.get("version") != VERSION:
        raise Broken(
            f"{MANIFEST}: version {VERSION} expected, this one was made by "
            f"{maker(manifest)}: export again with this cczoo"
        )
    try:
        Manifest.parse(manifest, MANIFEST)
    except UserError as error:
        raise Broken(one_line(str(error))) from None
    return manifest


def maker(manifest: Mapping[str, Any]) -> str:
    """Which cczoo made a bundle, according to its manifest."""
    return one_line(f"cczoo {manifest.get('cczoo_version', 'before 0.1.0')}", 80)


def read_bundle(directory: Path, signers: Path | None = None) -> Bundle:
    """Read a bundle and find it intact; nothing of it is run.

    Parameters
    ----------
    directory : Path
    signers : Path, optional
        Whose signature is demanded, see :func:`export.bundle.signature.signer_of`.

    Raises
    ------
    UserError
        When the directory holds no readable manifest.
    Broken
        When the bundle isn't intact: a file, the manifest included, isn't as it was exported, or
        one was added. If a signature is demanded and isn't right, before anything else.
    """
    path = directory / MANIFEST
    try:
        content = read_plain(path, MAX_MANIFEST_BYTES)
        names = entries(directory)
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}: give a directory made by cczoo export"
        ) from None
    signer = None
    if signers is not None:
        signature = read_plain(directory / SIGNATURE, MAX_BYTES) if SIGNATURE in names else None
        signer = signer_of(content, signature, signers)
    manifest = read_manifest(content, str(path))
    # An unlisted file is one that a build in this directory could pick up: a header, a bytecode.
    known = {*manifest["files"], MANIFEST, CERTIFICATE, SIGNATURE}
    if added := [name for name in names if name not in known]:
        raise Broken(f"{one_line(added[0])}: isn't of this bundle: remove it, and build elsewhere")
    contents = {}
    for name, expected in manifest["files"].items():
        try:
            contents[name] = read_plain(directory / name)
        except FileNotFoundError:
            raise Broken(f"{name}: missing") from None
        if _sha256(contents[name]) != expected:
            raise Broken(f"{name}: altered since export")
    return _opened(directory, manifest, contents, content, signer)


def _opened(
    directory: Path,
    manifest: dict[str, Any],
    contents: dict[str, bytes],
    manifest_bytes: bytes,
    signer: dict[str, str] | None,
) -> Bundle:
    form = None
    features = tuple(Feature(**item["spec"]) for item in manifest["features"])
    try:
        if _features(features) != manifest["features"]:
            raise Broken(f"{MANIFEST}: features: ranges in integers aren't those of their specs")
        if FORM in contents:
            form = loads(contents[FORM], FORM)
    except UserError as error:
        raise Broken(one_line(str(error))) from None
    if form is not None:
        described = (form.features, list(form.labels), form.decision_threshold, form.kind)
        if (model_hash(form), *described) != (
            manifest["model_hash"],
            features,
            *(manifest[key] for key in ("labels", "cut", "kind")),
        ):
            raise Broken(f"{FORM}: not the model that the manifest describes")
        if dumps(form).encode() != contents[FORM]:
            raise Broken(f"{FORM}: isn't in canonical form: export it again")
    if wrong := _settings_problem(manifest["family"], manifest["feature_settings"]):
        raise Broken(f"{MANIFEST}: {wrong}")
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
        contents,
        manifest_bytes,
        signer,
    )


def _settings_problem(family: str, settings: Mapping[str, Any]) -> str:
    """What is wrong with the settings of a family's features; empty if nothing is."""
    try:
        meant = settings_for(family, settings, "feature_settings")
    except UserError as error:
        return one_line(str(error))
    # As text: true is no 1, and 25.0 no 25.
    if canonical(meant) == canonical(dict(settings)):
        return ""
    return (
        f"feature_settings: aren't all settings of the family {one_line(family, 80)}, or others too"
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
