"""The last step of ``cczoo train sbd neural``: the network that is kept, as a zoo entry."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.description import json_file, sample, vectors_file
from export.entry import made_by
from export.onnx_options import in_int8
from export.onnx_run import decided, predict
from export.torch_file import convert
from features.grid import on_grid
from features.sbd import features_of
from features.spec import Feature, schema_hash
from models import store
from models.sbd import accumulate, card, digits
from models.sbd.evaluate import testset
from models.sbd.evaluate.holdout import sides
from models.sbd.neural import outofsample
from models.sbd.params import THRESHOLD
from models.sbd.results.accuracy import RULES, TABLE5, SiteRow
from models.sbd.results.neural import CURVE, NEURAL
from models.sbd.windows import Windows
from pipelines.reporting import neural as figures
from pipelines.sbd.fit import told_figures
from pipelines.sbd.neural_job import FAMILY, NeuralJob, measured, told

if TYPE_CHECKING:
    from models.sbd.neural.training import Fitted

CONTENTS = 64
"""Observations that are stored: each is a whole series."""
TESTED = 120
"""Windows of the stored test sample, about: each is 900 numbers."""
NO_FORM = "a convolution over series has no integer form"
WORST_ERROR = 1e-4
"""Of the ONNX form's probability; float32 sums in another order differ by some 1e-6."""
SUMMARY = (
    "A small Siamese temporal convolution on the raw pair of series: it makes its own features."
)
SEEN = (
    "per subflow: RTT, congestion state and throughput in 128 cells of the window",
    "RTT in 64 cells of up to 8 windows",
    "smallest RTT",
)
"""What the columns are, for people."""
NOT_MEASURED = {"name": "not measured for this network", "window": "–", "connection": "–"}
"""The card's row where the results kept are of other settings or of another table."""
LIMITS = (
    "Reads series, not features: `cczoo features series` makes its table, and nothing here makes "
    "them inside a kernel. Its targets are those that run ONNX, beside the kernel.",
)


def fit(job: NeuralJob) -> dict[str, Any]:
    """Train on all that may be learned from, convert, measure and write the entry.

    A run that is killed goes on from ``training.safetensors`` in the output directory.

    Returns
    -------
    dict
        ``entry`` (its directory), ``epochs``, ``best``, ``parameters``, ``onnx``.
    """
    from models.sbd.neural import training
    from models.sbd.neural.network import parameters

    train, _ = sides(job.table, job.sbd.protocol)
    rows = job.rows(train)
    settings = job.neural
    held = outofsample.validation_rows(train.group, settings.validation, settings.seed)
    tell = told(settings.epochs)
    found = training.fit(
        rows, train.y, held, settings, settings.seed, checkpoint=job.out, told=tell
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
    entry = _write(job, train, specs, content, verdicts, metrics, found)
    return {"entry": str(entry), **metrics["training"]}


def _measured(
    content: bytes, found: Fitted, rows: NDArray[np.float32], specs: tuple[Feature, ...]
) -> dict[str, Any]:
    """How far ONNX Runtime's answers are from PyTorch's, in float32 and in int8.

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


def _write(
    job: NeuralJob,
    train: Windows,
    specs: tuple[Feature, ...],
    content: bytes,
    verdicts: accumulate.Verdicts,
    metrics: Mapping[str, Any],
    found: Fitted,
) -> Path:
    command = made_by()
    said = {"width": job.neural.width, "epochs": len(found.curve)}
    said |= {"parameters": metrics["training"]["parameters"]}
    test = testset.sample(testset.fixed(job.table, job.sbd.protocol), TESTED)
    test = digits.stored(test, specs)
    kept = on_grid(sample(job.rows(train).astype(np.float64), CONTENTS), specs)
    columns = [feature.name for feature in specs]
    answers = predict(content, test.matrix(columns), outofsample.NAME)
    files = {
        "model.onnx": content,
        "metrics.json": json_file(digits.rounded(metrics)),
        "vectors.json": vectors_file(kept, predict(content, kept, outofsample.NAME)),
        testset.FILE: testset.dump(test, columns, {"model.onnx": decided(answers, THRESHOLD)}),
    }
    files["card.md"] = card.render(
        name=outofsample.NAME,
        summary=SUMMARY,
        label="Siamese temporal convolution",
        settings=said,
        count=len(specs),
        features=list(SEEN),
        trained={
            "windows": len(train),
            "connections": int(np.unique(train.group).size),
            "datasets": sorted(set(train.column("dataset")) - {""}),
        },
        schema_hash=schema_hash(specs, job.settings),
        windows=job.settings,
        data_hash=job.data_hash,
        command=command,
        verdicts=verdicts,
        level=round(100 * job.sbd.confidence),
        figures=told_figures(metrics, job.sbd.protocol.splits) or [NOT_MEASURED],
        others=_others(job, metrics),
        coverage=[],
        limits=LIMITS,
    ).encode()
    meta = {
        "name": outofsample.NAME,
        "kind": "neural",
        "family": FAMILY,
        "features": columns,
        "feature_specs": [dataclasses.asdict(feature) for feature in specs],
        "feature_settings": job.settings,
        "schema_hash": schema_hash(specs, job.settings),
        "data_hash": job.data_hash,
        "created_by": command,
        "labels": ("NSB", "SB"),
        "no_form": NO_FORM,
        "scaling": {"float_error": metrics["training"]["onnx"]["float_error"]},
        "calibration": {
            "kind": "platt",
            "slope": round(verdicts.slope, digits.CALIBRATION),
            "offset": round(verdicts.offset, digits.CALIBRATION),
        },
        "accumulation": {
            "forget": verdicts.forget,
            "temper": verdicts.temper,
            "confidence": verdicts.confidence,
        },
    }
    return store.save((job.zoo or job.out) / outofsample.NAME, meta, files).directory


def _metrics(job: NeuralJob) -> dict[str, Any]:
    """Out-of-sample figures as `measure` left them, here or in the repository; of this network."""
    own = job.out / NEURAL.name
    kept = measured(own, job) or measured(job.kept, job)
    rows = () if kept is None else kept.protocols
    found: dict[str, Any] = {row.protocol: row.model_dump() for row in rows}
    found["headline"] = {
        protocol: {kind: row[kind]["mean"] for kind in ("window", "connection")}
        for protocol, row in found.items()
    }
    return found


def _others(job: NeuralJob, metrics: Mapping[str, Any]) -> list[dict[str, str]]:
    """The comparison over the four sites, where both tables are there."""
    if "within" not in metrics or job.others is None:
        return []
    folder = job.others.parent
    if not all((folder / file.name).is_file() for file in (TABLE5, RULES)):
        return []
    own = metrics["within"]
    row = {"both": own["window"], **{key: own[key] for key in ("sb", "nsb", "connection")}}
    mine = SiteRow(dataset="ALL", model=outofsample.NAME, **row)
    table5, rules = TABLE5.read(folder), RULES.read(folder)
    return card.others([mine, *table5], rules, outofsample.NAME)
