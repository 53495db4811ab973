"""``reference.json`` describes a model's training set and is kept with the model.

A seeded sample of whole connections with their attributes, a few windows of each, and how the
model did on connections that it hadn't learned from: enough to recognise drift without the training
table. Values have four significant digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError
from models.sbd.params import THRESHOLD, Drift
from models.sbd.windows import Windows, attributes, windows

FILE = "reference.json"
"""Name of the file in a zoo entry."""
FORMAT = 1
SUMS = ("model.windows", "model.right", "model.shared", "model.confidence")
"""Columns of :attr:`Reference.held_out`; no attribute is called so."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """What new logs are compared with.

    Attributes
    ----------
    table : Windows
        Windows of training connections with attributes and features, thinned.
    connections, windows : int
        How many the whole training set had.
    held_out : polars.DataFrame or None
        Per connection that training left out: attributes as strings, and sums over its windows of
        ``model.windows`` (1), ``model.right`` (NaN without a label), ``model.shared`` (answered
        SB) and ``model.confidence``.
    """

    table: Windows
    connections: int
    windows: int
    held_out: pl.DataFrame | None


def thin(table: Windows, each: int) -> Windows:
    """At most ``each`` windows of every connection, evenly over its life."""
    begin = np.flatnonzero(np.append(True, table.group[1:] != table.group[:-1]))
    if not len(table):
        return table
    count = np.diff(np.append(begin, len(table)))
    place = np.arange(len(table)) - np.repeat(begin, count)
    share = np.linspace(0, 1, each) if each > 1 else np.zeros(1)
    chosen = np.rint(share[:, None] * (count - 1)[None, :]).astype(np.int64)
    kept = (chosen[:, np.repeat(np.arange(len(begin)), count)] == place).any(axis=0)
    return table.take(kept)


def sample(table: Windows, connections: int, seed: int) -> Windows:
    """At most ``connections`` whole connections, drawn at random."""
    names = np.unique(table.group)
    if names.size <= connections:
        return table
    chosen = np.random.default_rng(seed).choice(names, connections, replace=False)
    return table.take(np.isin(table.group, chosen))


def answers(
    table: Windows, probability: Floats, names: Sequence[str], threshold: float = THRESHOLD
) -> pl.DataFrame:
    """How a model answers, per connection; see :class:`Reference`.

    Parameters
    ----------
    table : Windows
        N rows, labelled or not.
    probability : float64 array [N]
        P(SB) of each.
    names : sequence of str
        Feature columns, which aren't attributes.
    threshold : float
        SB if the probability is above it: the model's own.
    """
    said = probability > threshold
    kept = attributes(table.frame, names)
    right = np.where(table.y >= 0, (said == (table.y == 1)).astype(np.float64), np.nan)
    rows = table.frame.select(kept).with_columns(
        pl.Series("model.connection", table.group),
        pl.Series("model.windows", np.ones(len(table))),
        pl.Series("model.right", right),
        pl.Series("model.shared", said.astype(np.float64)),
        pl.Series("model.confidence", np.maximum(probability, 1 - probability)),
    )
    whole = rows.group_by("model.connection", maintain_order=True).agg(
        *(pl.col(name).first() for name in kept), *(pl.col(name).sum() for name in SUMS)
    )
    return whole.drop("model.connection")


def of(
    train: Windows, names: Sequence[str], held_out: pl.DataFrame | None, settings: Drift, seed: int
) -> Reference:
    """Reference of a training set.

    Parameters
    ----------
    train : Windows
        Rows that the model learns from.
    names : sequence of str
        The model's features.
    held_out : polars.DataFrame, optional
        Result of :func:`answers` on rows that it doesn't learn from.
    settings : Drift
        ``sample`` connections, ``windows`` of each.
    seed : int
        Seed of the sample.
    """
    kept = thin(sample(train, settings.sample, seed), settings.windows)
    return Reference(kept, np.unique(train.group).size, len(train), held_out)


def dumps(reference: Reference, names: Sequence[str]) -> bytes:
    """``reference.json``."""
    table = reference.table
    held = reference.held_out
    columns = attributes(table.frame, names)
    head = {
        "format": FORMAT,
        "features": list(names),
        "connections": reference.connections,
        "windows": reference.windows,
        "group": table.group.tolist(),
        "columns": _coded(table.frame.select(columns)),
        "held_out": None,
    }
    if held is not None:
        sums = held.select(pl.col(SUMS).round(4).fill_nan(None)).to_dict(as_series=False)
        head["held_out"] = {"sums": sums, "columns": _coded(held.drop(SUMS))}
    rows = ",\n  ".join(
        "[" + ", ".join(f"{value:.4g}" for value in row) + "]" for row in table.matrix(names)
    )
    text = json.dumps(head, sort_keys=True, allow_nan=False)
    return f'{text[:-1]},\n "values": [\n  {rows}\n ]}}\n'.encode()


def loads(content: Mapping[str, Any], names: Sequence[str], where: str) -> Reference:
    """Read ``reference.json``.

    Raises
    ------
    UserError
        When it is of another version or of other features.
    """
    if content.get("format") != FORMAT or content.get("features") != list(names):
        raise UserError(f"{where}: not a reference of this version and model: train again")
    values = np.array(content["values"], dtype=np.float64).reshape(-1, len(names))
    features = {name: values[:, i] for i, name in enumerate(names)}
    group = np.array(content["group"], dtype=np.int64)
    frame = pl.DataFrame(
        {"connection": group, "window": np.arange(group.size), **features}
    ).with_columns(_decoded(content["columns"]))
    held = content["held_out"]
    return Reference(
        windows(frame),
        int(content["connections"]),
        int(content["windows"]),
        None
        if held is None
        else pl.DataFrame(held["sums"], schema=dict.fromkeys(SUMS, pl.Float64)).with_columns(
            _decoded(held["columns"])
        ),
    )


def _coded(frame: pl.DataFrame) -> dict[str, dict[str, list[Any]]]:
    """Few values many times: each once, and numbers of them; null is -1."""
    found = {}
    for name in frame.columns:
        text = frame[name].cast(pl.String)
        levels = sorted(set(text.drop_nulls()))
        place = {level: number for number, level in enumerate(levels)}
        codes = [-1 if value is None else place[value] for value in text]
        found[name] = {"levels": levels, "codes": codes}
    return found


def _decoded(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[pl.Series]:
    return [
        pl.Series(name, [None if c < 0 else one["levels"][c] for c in one["codes"]], pl.String)
        for name, one in columns.items()
    ]
