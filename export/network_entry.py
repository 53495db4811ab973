"""Makes entries of the zoo from ONNX files: a policy's network, say, recurrent or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.document import dumps
from export.entry import STORED_VECTORS, json_file, loss, sample, vectors_file
from export.fixed import to_integers
from export.loss import apart, real_scores
from export.onnx_metadata import states_of
from export.onnx_run import decided, predict
from export.onnx_source import source_from_bytes
from features.grid import on_grid
from models import store
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
        (:func:`export.onnx_metadata.metadata`).
    meta : mapping
        As for :func:`export.entry.write_entry`, without what the file states: ``family`` at least.
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
    kept = on_grid(values, source.features)
    kept = kept[:STORED_VECTORS] if states_of(onnx, name) else sample(kept)
    answers = predict(onnx, kept, name)
    files = {
        "model.onnx": onnx,
        "metrics.json": json_file(digits.rounded(metrics)),
        "card.md": card.encode(),
        "vectors.json": vectors_file(kept, answers, source.output.kind),
    }
    quantization_error: dict[str, Any] = {}
    if source.form is not None:
        files["model.json"] = dumps(source.form).encode()
        integers = to_integers(kept, source.features)
        if source.output.kind == "scores":
            differing = len(apart(real_scores(source.form, integers), answers))
            quantization_error = {"rows": len(kept), "disagreements": differing}
        else:
            ours = source.form.evaluate(integers).classes
            quantization_error = loss(decided(answers, source.threshold), ours, None)
    described: dict[str, Any] = {
        **meta,
        "name": name,
        "kind": source.kind,
        "features": [f.name for f in source.features],
        "feature_specs": [asdict(f) for f in source.features],
        "feature_settings": source.feature_settings,
        "schema_hash": source.schema_hash,
        "labels": source.labels,
        "threshold": source.threshold,
        "output": source.output.model_dump(mode="json"),
        "states": states_of(onnx, name),
        "no_form": source.no_form,
        "scaling": quantization_error,
    }
    return store.save((zoo or store.TRAINED) / name, described, files).directory
