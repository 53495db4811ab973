"""Makes entries of the zoo from ONNX files: a policy's network, say, recurrent or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.description import STORED_VECTORS, describe, sample
from export.loss import in_integers
from export.onnx.metadata import states_of
from export.onnx.run import predict
from export.onnx.source import source_from_bytes
from features.grid import on_grid
from models.sbd import digits


def write_network(
    name: str,
    onnx: bytes,
    meta: Mapping[str, Any],
    metrics: Mapping[str, Any],
    card: str,
    *,
    vectors: NDArray[np.float64] | None = None,
    zoo: Path | None = None,
) -> Path:
    """Keep a model that is an ONNX file: a policy's network, say, recurrent or not.

    Parameters
    ----------
    name : str
    onnx : bytes
        Its metadata say what its features, labels, output and states are
        (:func:`export.onnx.metadata.metadata`).
    meta : mapping
        As of :func:`export.entry.write_entry`, without what the file states: ``family`` at least.
    metrics : mapping
        For ``metrics.json``.
    card : str
        For ``card.md``.
    vectors : float64 array [N, d], optional
        Observations to keep with the file's answers, of a recurrent one a sequence; drawn from the
        features' ranges by default.
    zoo : Path, optional
        Where to write it, ``models/trained`` by default.

    Returns
    -------
    Path
        The entry's directory.

    Raises
    ------
    UserError
        When the file can't be read or run, or its metadata or ``meta`` are wrong.
    """
    source = source_from_bytes(onnx, name, name)
    values = source.values if vectors is None else np.asarray(vectors, dtype=np.float64)
    if not np.isfinite(values).all():
        raise UserError(f"model {name!r}: its observations aren't all finite")
    states = states_of(onnx, name)
    kept = on_grid(values, source.features)
    kept = kept[:STORED_VECTORS] if states else sample(kept)
    answers = predict(onnx, kept, name)
    error = in_integers(source, kept, answers)
    source = replace(source, values=kept, probability=answers, quantization_error=error)
    return describe(source, meta, digits.rounded(metrics), card, states=states).write(zoo)
