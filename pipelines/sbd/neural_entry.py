"""Write the neural classifier's entry: its description, card and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.command_line import made_by
from export.description import describe, sample
from export.onnx.run import predict
from export.source import Source
from export.stored_test import test_file
from features.grid import on_grid
from features.sbd import features_of
from models.card import DASH, Made, Row
from models.origin import Origin
from models.sbd import card, digits
from models.sbd.accumulate import VerdictSettings, in_meta
from models.sbd.card_figures import accuracies
from models.sbd.evaluate import testset
from models.sbd.neural import outofsample
from models.sbd.params import THRESHOLD
from models.sbd.windows import Windows
from pipelines.sbd.neural_job import FAMILY, NeuralJob

CONTENTS = 64
"""Number of observations that are stored, each of which is a whole series."""
TESTED = 120
"""Approximate number of windows in the stored test sample, each of which is 900 numbers."""
NO_FORM = "a convolution over series has no integer form"
SEEN = (
    "per subflow: RTT, congestion state and throughput in 128 cells of the window",
    "RTT in 64 cells of up to 8 windows",
    "smallest RTT",
)
"""Description of the columns for people."""
NOT_MEASURED: Row = ("not measured for this network", DASH, DASH)
"""The card's row if the results kept are of other settings or of another table."""


def write(
    job: NeuralJob,
    train: Windows,
    content: bytes,
    verdicts: VerdictSettings,
    metrics: Mapping[str, Any],
    others: Sequence[Row],
) -> Path:
    """Write a trained network to the zoo.

    Parameters
    ----------
    job : NeuralJob
        The training.
    train : Windows
        The rows that the network was trained on.
    content : bytes
        The ONNX file.
    verdicts : VerdictSettings
        How windows add up to a verdict.
    metrics : mapping
        Content of ``metrics.json``; accuracies and ``training`` stand in the card too.
    others : sequence of tuple of str
        Rows of the comparison, as :func:`models.sbd.card.text` takes them.

    Returns
    -------
    Path
        The entry's directory.
    """
    name, specs = outofsample.NAME, features_of(FAMILY)
    training = metrics["training"]
    kept = on_grid(sample(job.rows(train).astype(np.float64), CONTENTS), specs)
    source = Source(
        name=name,
        version="1",
        family=FAMILY,
        kind="neural",
        features=specs,
        labels=("NSB", "SB"),
        threshold=THRESHOLD,
        form=None,
        no_form=NO_FORM,
        onnx=content,
        values=kept,
        probability=predict(content, kept, name),
        quantization_error={"float_error": training["onnx"]["float_error"]},
        feature_settings=job.settings,
    )
    origin = Origin(FAMILY, made_by(), job.settings, job.data_hash)
    stated = {"width": job.neural.width, "epochs": training["epochs"]}
    made = Made(
        kind="Siamese temporal convolution",
        features=SEEN,
        count=len(specs),
        trained_on=card.trained_on(train),
        schema_hash=source.schema_hash,
        origin=origin,
        settings={**stated, "parameters": training["parameters"]},
    )
    rows = accuracies(metrics, job.sbd.protocol.splits) or [NOT_MEASURED]
    text = card.text(name, made, verdicts, job.sbd.confidence, rows, others, coverage=[])
    meta = {**origin.meta(), **in_meta(verdicts, digits.CALIBRATION)}
    test = testset.kept_with(testset.fixed(job.table, job.sbd.protocol), specs, TESTED)
    more = test_file(test, source)
    found = describe(source, meta, digits.rounded(metrics), text, more=more)
    return found.write(job.zoo or job.out)
