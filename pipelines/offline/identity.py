"""Say of whom figures are, so that those of another training aren't taken for a policy's own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from data.errors import UserError
from pipelines.offline.train import fingerprint

FORMAT = 1


def of(folder: Path | None, decisions: Path) -> dict[str, Any]:
    """What tells figures from others: hashes of the policy's weights and of the decisions."""
    from data.decisions import files

    return {
        "format": FORMAT,
        "weights": weights(folder) if folder is not None else None,
        "decisions": fingerprint(files.files(decisions)),
    }


def weights(folder: Path) -> str:
    """SHA-256 of the network that a training's folder plays by."""
    from models.offline import acting

    digest = hashlib.sha256()
    for name, value in sorted(acting.weights(folder).items()):
        digest.update(name.encode() + value.tobytes())
    return digest.hexdigest()


def read(folder: Path, estimate: Path) -> dict[str, Any]:
    """Read the figures of a training.

    Parameters
    ----------
    folder : Path
        The training's.
    estimate : Path
        What ``cczoo offline estimate --out`` wrote.

    Raises
    ------
    UserError
        When there are none, or they are of another training.
    """
    try:
        found: dict[str, Any] = json.loads(estimate.read_text(encoding="utf-8"))
        mine, _ = found["weights"], (found["verdict"]["beats"], found["verdict"]["reason"])
    except OSError as error:
        raise UserError(
            f"{estimate}: {error.strerror}: cczoo offline estimate --out writes it"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{estimate}: no estimate: cczoo offline estimate --out writes one"
        ) from None
    if found.get("format") != FORMAT or mine != weights(folder):
        raise UserError(f"{estimate}: of another training than {folder}: estimate it again")
    return found


def tags(found: dict[str, Any]) -> dict[str, str]:
    """What a version in the registry says of its figures."""
    gain = found["fqe_gain"]
    return {
        "estimate": found["verdict"]["reason"],
        "estimate.gain": f"{gain['mean']:.6g}",
        "estimate.gain.low": f"{gain['low']:.6g}",
        "estimate.gain.high": f"{gain['high']:.6g}",
        "estimate.effective": f"{found['effective']:.6g}",
        "estimate.decisions": found["decisions"],
    }
