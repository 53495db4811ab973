"""Atheris target of what comes with a bundle or an entry: a manifest, or the zoo's meta.json."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["export", "models.store", "data.errors"]):
    from data.errors import UserError
    from export.bundle.manifest import _sha256, read_manifest
    from export.bundle.plain_files import Broken
    from export.document import canonical
    from models import store

from document_fuzz import change

WORK = Path(tempfile.mkdtemp(prefix="cczoo-manifest-fuzz-"))


def check(data: bytes) -> None:
    """One execution: it is taken, or refused in one printable line."""
    try:
        if data.startswith(b"meta"):
            (WORK / "meta.json").write_bytes(data[4:])
            store.load(WORK)
        else:
            read_manifest(sealed(data), "manifest.json")
    except (UserError, Broken) as error:
        if not str(error).isprintable():
            raise AssertionError("a message of several lines") from error


def sealed(data: bytes) -> bytes:
    """With its own hash right, where it is an object: what lies behind that check is fuzzed."""
    try:
        manifest = json.loads(data)
        if isinstance(manifest, dict):
            manifest.pop("manifest_hash", None)
            manifest["manifest_hash"] = _sha256(canonical(manifest).encode())
            return canonical(manifest).encode()
    except (ValueError, RecursionError):
        pass
    return data


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Change a value of the document, or its bytes."""
    chance = random.Random(seed)
    head = b"meta" if data.startswith(b"meta") else b""
    try:
        document = json.loads(data[len(head) :])
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or chance.random() < 0.2:
        return atheris.Mutate(data, most)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        change(document, chance)
    changed = head + json.dumps(document).encode()
    return changed if len(changed) <= most else atheris.Mutate(data, most)


if __name__ == "__main__":
    atheris.Setup(sys.argv, check, custom_mutator=mutate)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
