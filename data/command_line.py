"""The command that is running, as entries and manifests record it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path


def made_by(arguments: Sequence[str] | None = None) -> str:
    """The command that is running, as an entry records it: absolute paths by their last name alone.

    Where a machine keeps its files is no property of a model.
    """
    given = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["cczoo", *(Path(w).name if w.startswith("/") else w for w in given)])
