"""What an entry says and holds, made in one place; `export.source.source_of` reads it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from export.source import Source

STORED_VECTORS = 256


@dataclass(frozen=True)
class Description:
    """An entry before it is written.

    Attributes
    ----------
    meta : mapping
        Fields of :class:`models.meta.Meta` without ``files`` and the checksum.
    files : mapping
        Name -> content of every file but ``meta.json``.
    """

    meta: Mapping[str, Any]
    files: Mapping[str, bytes]

    def write(self, zoo: Path | None = None) -> Path:
        """Write it below ``zoo``, ``models/trained`` by default; returns its directory."""
        from models import store

        directory = (zoo or store.TRAINED) / self.meta["name"]
        return store.save(directory, self.meta, self.files).directory

    def contents(self) -> dict[str, bytes]:
        """Name -> content of every file, ``meta.json`` too: for an entry in another's directory.

        Raises
        ------
        UserError
            When ``meta`` has wrong or missing keys.
        """
        from models import store

        return store.written_files(self.meta, self.files, f"model {self.meta['name']!r}")


def describe(
    source: Source,
    origin: Mapping[str, Any],
    metrics: Mapping[str, Any],
    card: str,
    *,
    states: Sequence[Mapping[str, Any]] = (),
    more: Mapping[str, bytes] | None = None,
) -> Description:
    """The description of any model: a trained one's, a network's, a function's.

    Parameters
    ----------
    source : Source
        The model in every form, its features, and the observations to keep with its answers.
    origin : mapping
        Fields of :class:`models.meta.Meta` that only training knows: those of
        :meth:`models.origin.Origin.meta`, ``version``, ``git_commit``, ``calibration`` and
        ``accumulation``.
    metrics : mapping
        For ``metrics.json``, with as many digits as mean something.
    card : str
        For ``card.md``, see :mod:`models.card`.
    states : sequence of mapping
        What a recurrent model remembers, as :class:`models.output.State` has it.
    more : mapping, optional
        Further files.
    """
    from export.document import dumps

    files = {
        "metrics.json": json_file(metrics),
        "card.md": card.encode(),
        "vectors.json": vectors_file(source.values, source.probability, source.output.kind),
        **(more or {}),
    }
    if source.onnx:
        files["model.onnx"] = source.onnx
    if source.form is not None:
        files["model.json"] = dumps(source.form).encode()
    meta = {
        **origin,
        "name": source.name,
        "kind": source.kind,
        "features": [feature.name for feature in source.features],
        "feature_specs": [asdict(feature) for feature in source.features],
        "feature_settings": source.feature_settings,
        "schema_hash": source.schema_hash,
        "labels": source.labels,
        "threshold": source.threshold,
        "output": source.output.model_dump(mode="json"),
        "states": list(states),
        "no_form": source.no_form,
        "scaling": source.quantization_error,
    }
    return Description(meta, files)


def sample(values: NDArray[np.float64], count: int = STORED_VECTORS) -> NDArray[np.float64]:
    """An even sample of rows [n, d], at most ``count`` of them."""
    import numpy as np

    return values[np.unique(np.linspace(0, len(values) - 1, count).astype(np.int64))]


def vectors_file(
    values: NDArray[np.float64], probability: NDArray[np.float64], kind: str = "classes"
) -> bytes:
    """``vectors.json``: rows [n, d], one a line, with the trained model's answers [n].

    ``kind`` of the output: of ``scores`` so many digits are kept, else so many decimals.
    """
    from models.sbd.digits import probabilities, significant

    rows = ",\n  ".join(json.dumps(row) for row in values.tolist())
    kept = significant(probability) if kind == "scores" else probabilities(probability)
    answers = json.dumps(kept.tolist())
    return f'{{\n "probability": {answers},\n "values": [\n  {rows}\n ]\n}}\n'.encode()


def json_file(value: Mapping[str, Any]) -> bytes:
    """JSON as entries hold it."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()
