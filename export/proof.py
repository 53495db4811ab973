"""Proves a model: exports, builds, runs and compares it in a folder that is thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data.place import scratch
from export.bundle.certificate import CERTIFICATE
from export.bundle.manifest import bundle_files
from export.params import Options, VerifyParams
from export.source import Source
from export.verify import verify
from models.store import replace_directory


@dataclass(frozen=True)
class Proof:
    """What the proof of a model found.

    Attributes
    ----------
    report : dict
        As :func:`export.verify.verify` returns it.
    certificate : bytes
        The bundle's ``certificate.json``.
    """

    report: dict[str, Any]
    certificate: bytes


def prove(
    source: Source,
    targets: Sequence[str],
    command: str,
    options: Options | None = None,
    params: VerifyParams | None = None,
) -> Proof:
    """Export a model to targets that can carry it, build and run them, and compare.

    Parameters
    ----------
    source : Source
    targets : sequence of str
        Names in :data:`export.targets.TARGETS`.
    command : str
        The command that exports, for the manifest.
    options : Options, optional
    params : VerifyParams, optional

    Raises
    ------
    UserError
        For targets that can't carry the model.
    """
    files = bundle_files(source, targets, options or Options(), command)
    with scratch("proof") as folder:
        bundle = folder / "bundle"
        replace_directory(bundle, files)
        report = verify(bundle, params or VerifyParams())
        return Proof(report, (bundle / CERTIFICATE).read_bytes())
