"""Bundles of trees for the tests of what runs in a kernel."""

from __future__ import annotations

from pathlib import Path

from export.bundle.manifest import bundle_files
from export.params import Options
from export.source import Source


def written(source: Source, folder: Path) -> Path:
    """A bundle with target bpf."""
    folder.mkdir()
    for name, content in bundle_files(source, ["bpf"], Options(), "a test").items():
        (folder / name).write_bytes(content)
    return folder
