"""The fixed test set: rows that no kept model has learned from, and the sample kept with a model.

Which rows those are :mod:`models.sbd.evaluate.holdout` says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from features.spec import Feature
from models.judged import StoredTest
from models.sbd.accumulate import VerdictSettings, last_of_each
from models.sbd.digits import rounded, stored
from models.sbd.evaluate.holdout import test_rows
from models.sbd.evaluate.scores import connection_state
from models.sbd.params import Protocol
from models.sbd.windows import Windows, attributes, windows
from models.stats.intervals import by_connection
from models.store import ZooModel
from models.trained import Test

FILE = "test.json"
"""Name of the file in a zoo entry."""
SAMPLE = 200
"""About how many windows are kept with a model."""


def fixed(table: Windows, protocol: Protocol) -> Windows:
    """Labelled rows of a table that are the test set.

    Parameters
    ----------
    table : Windows
    protocol : Protocol
        ``unseen`` and ``holdout`` say which.
    """
    return table.take((table.y >= 0) & test_rows(table, protocol))


def table_hash(table: Windows, names: Sequence[str]) -> str:
    """SHA-256 of which rows these are, of their labels and of the features ``names``."""
    digest = hashlib.sha256()
    for row in zip(table.column("connection"), table.column("window"), table.y, strict=True):
        digest.update("\t".join(map(str, row)).encode() + b"\n")
    digest.update(np.ascontiguousarray(table.matrix(sorted(names)), dtype="<f8").tobytes())
    return digest.hexdigest()


def right_connections(
    table: Windows, probability: NDArray[np.float64], verdicts: VerdictSettings
) -> NDArray[np.bool_]:
    """Which connections are answered rightly by the verdict at their end."""
    state = connection_state(probability, table.group, verdicts)
    last = last_of_each(table.group)
    return np.asarray((state[last] >= 0) == (table.y[last] == 1), dtype=np.bool_)


def sample(table: Windows, limit: int = SAMPLE) -> Windows:
    """Whole connections, evenly over the table, of about ``limit`` windows."""
    groups = np.unique(table.group)
    if not len(table):
        return table
    count = max(1, min(len(groups), round(limit * len(groups) / len(table))))
    chosen = groups[np.linspace(0, len(groups) - 1, count).astype(np.int64)]
    return table.take(np.isin(table.group, chosen))


def dump(table: Windows, names: Sequence[str], answers: Mapping[str, NDArray[np.int64]]) -> bytes:
    """``test.json``: rows, labels, attributes, and accuracies with their intervals.

    Parameters
    ----------
    table : Windows
        N labelled rows.
    names : sequence of str
        The model's features.
    answers : mapping
        File of the entry -> its classes, int array [N], 1 for SB.
    """
    columns = ["connection", "window", "label"]
    columns += [n for n in attributes(table.frame, names) if table.frame[n].n_unique() > 1]
    content = {
        "accuracy": {file: accuracy(table, classes) for file, classes in answers.items()},
        "columns": {name: table.frame[name].to_list() for name in columns},
        "features": list(names),
    }
    rows = ",\n  ".join(json.dumps(row) for row in table.matrix(names).tolist())
    head = json.dumps(content, sort_keys=True)
    return f'{head[:-1]},\n "values": [\n  {rows}\n ]}}\n'.encode()


def kept_with(table: Windows, features: Sequence[Feature], limit: int = SAMPLE) -> Test | None:
    """A sample of the test set, about ``limit`` windows, to be stored with a model.

    None where the test set is empty.
    """
    return as_test(sample(table, limit), features)


def as_test(table: Windows, features: Sequence[Feature]) -> Test | None:
    """These rows as the test that is stored with a model; None if there is none."""
    if not len(table):
        return None
    rows = stored(table, features)
    names = [feature.name for feature in features]
    return Test(FILE, rows.matrix(names), lambda answers: dump(rows, names, answers))


def accuracy(table: Windows, classes: NDArray[np.int64]) -> dict[str, Any]:
    """Share of windows answered rightly with its 95 % interval over connections."""
    interval = by_connection(classes == table.y, table.group)
    return {
        **rounded(interval),
        "windows": len(table),
        "connections": int(np.unique(table.group).size),
    }


def read(content: Mapping[str, Any]) -> Windows:
    """Rows of a ``test.json``."""
    values = np.array(content["values"], dtype=np.float64).reshape(-1, len(content["features"]))
    features = {name: values[:, i] for i, name in enumerate(content["features"])}
    return windows(pl.DataFrame({**content["columns"], **features}))


def stored_test(entry: ZooModel) -> StoredTest | None:
    """The rows of an entry's ``test.json``, None where it has none.

    Their score is the share answered rightly, as the accuracies stored with them.
    """
    if FILE not in entry.meta.files:
        return None
    content = entry.read_json(FILE)
    table = read(content)
    return StoredTest(
        observations=table.matrix(entry.meta.features),
        score=lambda answers: float(rounded(float((answers == table.y).mean()))),
        stored=content["accuracy"],
        of="windows",
    )
