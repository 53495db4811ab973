"""The last step of ``cczoo train sbd neural``: train the network that is kept as a zoo entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.onnx.options import in_int8
from export.onnx.run import decided, predict
from export.onnx.torch_file import convert
from features.sbd import features_of
from features.spec import Feature
from models.card import Row
from models.sbd import accumulate, digits
from models.sbd.card_figures import others
from models.sbd.evaluate.holdout import held_out_split
from models.sbd.neural import outofsample
from models.sbd.params import THRESHOLD
from models.sbd.results.accuracy import RULES, TABLE5, SiteRow
from models.sbd.results.neural import CURVE, NEURAL
from pipelines.reporting.sbd import neural as figures
from pipelines.sbd import neural_entry
from pipelines.sbd.neural_job import FAMILY, NeuralJob, measured, reporter

if TYPE_CHECKING:
    from models.sbd.neural.training import Fitted

WORST_ERROR = 1e-4
"""Largest error of the ONNX form's probability; float32 sums in another order differ by 1e-6."""


def fit(job: NeuralJob) -> dict[str, Any]:
    """Train on all rows that may be learned from, convert, measure and write the entry.

    After a killed run, the next one goes on from ``training.safetensors`` in the output directory.

    Returns
    -------
    dict
        ``entry`` (its directory), ``epochs``, ``best``, ``parameters``, ``onnx``.
    """
    from models.sbd.neural import training
    from models.sbd.neural.network import parameters

    train, _ = held_out_split(job.table, job.sbd.protocol)
    rows = job.rows(train)
    settings = job.neural
    held = outofsample.validation_rows(train.group, settings.validation, settings.seed)
    report = reporter(settings.epochs)
    found = training.fit(
        rows, train.y, held, settings, settings.seed, checkpoint=job.out, told=report
    )
    specs = features_of(FAMILY)
    content = convert(found.network, specs, outofsample.NAME, ("NSB", "SB"), job.settings)
    onnx = _measured(content, found, rows, specs)
    curve = [asdict(epoch) for epoch in found.curve]
    figures.write_curve(job.out, CURVE.write(job.out, curve), found.best)
    verdicts = accumulate.fit(
        training.probability(found.network, rows[held]),
        train.y[held],
        train.group[held],
        job.sbd.plus.confidence,
    )
    metrics = _metrics(job)
    metrics["training"] = {
        "windows": int((~held).sum()),
        "validation_windows": int(held.sum()),
        "epochs": len(curve),
        "best": found.best,
        "validation": curve[found.best],
        "parameters": parameters(found.network),
        "onnx": onnx,
    }
    entry = neural_entry.write(job, train, content, verdicts, metrics, _others(job, metrics))
    return {"entry": str(entry), **metrics["training"]}


def _measured(
    content: bytes, found: Fitted, rows: NDArray[np.float32], specs: tuple[Feature, ...]
) -> dict[str, Any]:
    """Measure how far ONNX Runtime's answers are from PyTorch's, in float32 and in int8.

    Raises
    ------
    UserError
        When the float form errs by more than :data:`WORST_ERROR`.
    """
    from models.sbd.neural import training

    meant = training.probability(found.network, rows)
    error = float(np.abs(predict(content, rows, outofsample.NAME) - meant).max())
    if not error <= WORST_ERROR:
        raise UserError(f"model {outofsample.NAME!r}: its ONNX form errs by {error:.2g}")
    small = in_int8(content, outofsample.NAME, "network")
    answers = predict(small, rows, outofsample.NAME)
    return {
        "bytes": len(content),
        "float_error": digits.bound(error),
        "int8_bytes": len(small),
        "int8_error": float(np.abs(answers - meant).max()),
        "int8_disagreement_share": float(
            (decided(answers, THRESHOLD) != decided(meant, THRESHOLD)).mean()
        ),
    }


def _metrics(job: NeuralJob) -> dict[str, Any]:
    """Out-of-sample figures of this network that `measure` has left here or in the repository."""
    own = job.out / NEURAL.name
    kept = measured(own, job) or measured(job.kept, job)
    rows = () if kept is None else kept.protocols
    found: dict[str, Any] = {row.protocol: row.model_dump() for row in rows}
    found["headline"] = {
        protocol: {kind: row[kind]["mean"] for kind in ("window", "connection")}
        for protocol, row in found.items()
    }
    return found


def _others(job: NeuralJob, metrics: Mapping[str, Any]) -> list[Row]:
    """Rows of the comparison over the four sites; empty unless both tables are there."""
    if "within" not in metrics or job.others is None:
        return []
    folder = job.others.parent
    if not all((folder / file.name).is_file() for file in (TABLE5, RULES)):
        return []
    own = metrics["within"]
    row = {"both": own["window"], **{key: own[key] for key in ("sb", "nsb", "connection")}}
    mine = SiteRow(dataset="ALL", model=outofsample.NAME, **row)
    table5, rules = TABLE5.read(folder), RULES.read(folder)
    return others([mine, *table5], rules, outofsample.NAME)
