"""Find the environment of its own that auto-sklearn has and ``make automl`` builds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import models
from data.errors import UserError

HOME = Path(models.__file__).parents[1] / ".automl"
"""Folder of the environment, the built wheels and the log of the last build."""
ISOLATED = Path(__file__).parent / "isolated"
"""Folder of the code that runs in that environment and of its requirements; never imported."""
REQUIREMENTS = ISOLATED / "requirements.txt"


def stamp(home: Path = HOME) -> dict[str, Any]:
    """Stamp that the last completed build has left; empty if there is none."""
    try:
        found = json.loads((home / "stamp.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def requirements_hash() -> str:
    """SHA-256 of the list of packages, since another list needs another build."""
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def is_built(home: Path = HOME) -> bool:
    """Whether a build of today's list of packages is there."""
    return stamp(home).get("requirements") == requirements_hash() and interpreter(home).exists()


def interpreter(home: Path = HOME) -> Path:
    """Path of the environment's Python, whether it is there or not."""
    return home / "env" / "bin" / "python"


def built_interpreter(home: Path = HOME) -> Path:
    """Path of the environment's Python.

    Raises
    ------
    UserError
        When the environment isn't built; the message has the command that builds it.
    """
    if is_built(home):
        return interpreter(home)
    missing = "is out of date" if stamp(home) else "isn't installed"
    raise UserError(
        f"auto-sklearn {missing} ({home}): build it with `make automl` (some minutes, once), or "
        "take --backend flaml"
    )
