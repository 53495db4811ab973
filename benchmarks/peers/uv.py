"""The uv that makes the peers' environments: named by UV, on the PATH, or the Makefile's own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

OWN = Path(__file__).resolve().parents[2] / ".make" / "uv" / "bin" / "uv"


def uv() -> str | None:
    """Its path; None where there is none."""
    named = os.environ.get("UV", "")
    if named and (found := shutil.which(named)):
        return str(Path(found).resolve())
    return shutil.which("uv") or (str(OWN) if OWN.is_file() else None)
