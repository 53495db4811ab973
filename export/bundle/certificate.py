"""Compares a target's answers, and writes a bundle's certificate: what verification found.

The fields of ``certificate.json`` are described in docs/certificate.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from data.errors import UserError
from export.bundle.manifest_schema import Certificate
from export.bundle.plain_files import Broken, read_plain
from export.document import canonical, parse_json
from export.ir import Form, Ints, Verdicts

CERTIFICATE = "certificate.json"
FORMAT = "cczoo-certificate"
VERSION = 1
CPU_INFO = Path("/proc/cpuinfo")


def compared(form: Form, x: Ints, answers: Verdicts, counts: dict[str, int]) -> dict[str, Any]:
    """Compare an integer target's answers with the form's own.

    Parameters
    ----------
    form : Form
    x : int64 array [N, d]
    answers : Verdicts
        The target's.
    counts : dict
        Vectors per origin.

    Returns
    -------
    dict
        ``vectors``, ``mismatches`` (of class or score), ``by_origin`` and, if there is one,
        ``first_mismatch``.
    """
    meant = _meant(form, x)
    unlike = meant.scores != answers.scores
    wrong = (meant.classes != answers.classes) | unlike.reshape(len(x), form.outputs).any(axis=1)
    report: dict[str, Any] = {
        "vectors": len(x),
        "mismatches": int(wrong.sum()),
        "by_origin": counts,
    }
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        report["first_mismatch"] = {
            "features": x[i].tolist(),
            "expected": {"class": int(meant.classes[i]), "score": meant.scores[i].tolist()},
            "found": {"class": int(answers.classes[i]), "score": answers.scores[i].tolist()},
        }
    return report


_last: tuple[ReferenceType[Form], ReferenceType[Ints], Verdicts] | None = None


def _meant(form: Form, x: Ints) -> Verdicts:
    """The form's own answers, kept until others are asked: all targets share their vectors."""
    global _last
    if _last is None or _last[0]() is not form or _last[1]() is not x:
        _last = (ref(form), ref(x), form.evaluate(x))
    return _last[2]


def target_hash(files: list[Path]) -> str:
    """SHA-256 over a target's files, names and contents, in order of their names."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def write_certificate(directory: Path, manifest: bytes, report: dict[str, Any]) -> None:
    """Write ``certificate.json`` beside the manifest, whole or not at all.

    Parameters
    ----------
    directory : Path
        The bundle.
    manifest : bytes
        Content of its manifest: the certificate is for this one alone.
    report : dict
        What verification found.

    Raises
    ------
    UserError
        When it can't be written there.
    """
    content = {
        **report,
        "format": FORMAT,
        "version": VERSION,
        "manifest_hash": hashlib.sha256(manifest).hexdigest(),
        **machine(),
    }
    if (directory / CERTIFICATE).is_dir() and not (directory / CERTIFICATE).is_symlink():
        return  # refused already, as something that no export and no verify writes
    try:
        # A name that nobody can have foreseen: the directory may be a stranger's.
        handle, name = tempfile.mkstemp(dir=directory, prefix=f".{CERTIFICATE}.", suffix=".part")
        part = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o644)
            file.write(_with_hash(content))
        part.replace(directory / CERTIFICATE)
    except OSError as error:
        raise UserError(
            f"{directory / CERTIFICATE}: {error.strerror}: verify a copy that you may write to"
        ) from None


def certificate_problem(directory: Path, manifest: bytes) -> str:
    """What is wrong with the certificate that a bundle has already.

    Parameters
    ----------
    directory : Path
        The bundle.
    manifest : bytes
        Content of its manifest.

    Returns
    -------
    str
        Empty if there is none, if it is as it was written for this very manifest, or if it is as
        it was written and states itself that the bundle failed.
    """
    path = directory / CERTIFICATE
    try:
        text = read_plain(path)
    except FileNotFoundError:
        return ""
    except Broken as error:
        return str(error)
    altered = f"{CERTIFICATE}: altered since it was written; verify has made it anew"
    try:
        content = parse_json(text, str(path))
    except UserError:
        return altered
    if not isinstance(content, dict):
        return altered
    content.pop("certificate_hash", None)
    try:
        Certificate.parse(content, CERTIFICATE)
        if _with_hash(content).encode() != text:
            return altered
    except (UserError, RecursionError):
        return altered
    if content.get("ok") and content.get("manifest_hash") != hashlib.sha256(manifest).hexdigest():
        return f"{CERTIFICATE}: of another bundle; verify has made it anew"
    return ""


def _with_hash(content: dict[str, Any]) -> str:
    """The file's text; its hash finds damage and stale copies, it is no signature."""
    digest = hashlib.sha256(canonical(content).encode()).hexdigest()
    return json.dumps({**content, "certificate_hash": digest}, indent=2, allow_nan=False) + "\n"


def machine() -> dict[str, str]:
    """What was measured on: architecture, processor, system and its release."""
    return {
        "machine": platform.machine(),
        "cpu": _cpu(),
        "system": platform.system(),
        "release": platform.release(),
    }


def _cpu() -> str:
    """The processor's name, since nanoseconds are its own."""
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
