"""What verification found, for one target and for a bundle."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from export.ir import Form, Ints, Verdicts

CERTIFICATE = "certificate.json"


def compared(form: Form, x: Ints, answers: Verdicts, counts: dict[str, int]) -> dict[str, Any]:
    """Compare an integer target's answers with the form's own.

    Parameters
    ----------
    form : Form
    x : int64 array [n, d]
    answers : Verdicts
        The target's.
    counts : dict
        Vectors per origin.

    Returns
    -------
    dict
        ``vectors``, ``mismatches`` (of class or score), ``by_origin`` and, where there is one,
        ``first_mismatch``.
    """
    meant = form.evaluate(x)
    unlike = meant.scores != answers.scores
    wrong = (meant.classes != answers.classes) | unlike.reshape(len(x), -1).any(axis=1)
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


def target_hash(files: list[Path]) -> str:
    """SHA-256 over a target's files, names and contents, in order of their names."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def write_certificate(directory: Path, report: dict[str, Any]) -> None:
    """Write ``certificate.json`` beside the manifest, whole or not at all."""
    content = {**report, "machine": platform.machine(), "system": platform.system()}
    part = directory / f".{CERTIFICATE}.{os.getpid()}.part"
    part.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
    part.replace(directory / CERTIFICATE)
