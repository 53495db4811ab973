"""A hash of all that a policy's run depends on besides the simulator: weights, settings, code."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import models

if TYPE_CHECKING:
    from models.policies.policy import Policy

_ROOT = Path(models.__file__).parent
_SOURCES = ("envs", "policies", "rl", "closedloop.py", "../features", "../data/netsim/cc")


def weights_digest(policy: Policy) -> str:
    """SHA-256 of the weights alone, by which two people know that they speak of one network."""
    digest = hashlib.sha256()
    for key, array in sorted(policy.weights.items()):
        digest.update(f"{key} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def identity(policy: Policy) -> str:
    """Hash of what plays, for runs that are kept.

    Parameters
    ----------
    policy : Policy
        Its name doesn't count.
    """
    settings = [policy.environment, policy.network, dict(policy.settings), dict(policy.params),
                policy.kinds]  # fmt: skip
    # A folder's settings and its entry's stand in other orders, and tuples are lists in a file.
    text = f"{json.dumps(settings, sort_keys=True)}{weights_digest(policy)}{code_digest()}"
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def code_digest() -> str:
    """SHA-256 of the code that plays policies."""
    digest = hashlib.sha256()
    for place in _SOURCES:
        path = _ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()
