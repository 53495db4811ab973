"""The table of sessions: read, put on the network's scale, and turned into values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError
from features.spec import Feature
from models.qos.discretise import GaussianDiscretizer
from models.qos.variables import SETTING, VARIABLES, of_group

Float = NDArray[np.float64]
Ints = NDArray[np.int64]
SCALE = 1024
_SOURCE = "mp-cdg.txt section 4.2.3"
FEATURES = tuple(
    Feature(VARIABLES[name].column, "Mbps", 0.0, 64.0, SCALE, _SOURCE, doc)
    for name, doc in (
        ("bw1", "Available bandwidth of the first path."),
        ("bw2", "Available bandwidth of the second path."),
        ("rate", "Rate that the video is coded at."),
    )
)
"""Settings as an exported model gets them."""
COLUMNS = tuple(one.column for one in VARIABLES.values())


@dataclass(frozen=True)
class Borders:
    """Borders between the values of each variable, in its own unit: variable -> rising numbers."""

    of: Mapping[str, tuple[float, ...]]

    def values(self, raw: Float) -> Ints:
        """Values of each session; float64 array [n, variables] -> int64 array of the same form."""
        columns = [
            np.searchsorted(np.array(self.of[name]), raw[:, place], side="left")
            for place, name in enumerate(VARIABLES)
        ]
        return np.column_stack(columns).astype(np.int64)

    @property
    def cardinality(self) -> dict[str, int]:
        """How many values each variable has."""
        return {name: len(self.of[name]) + 1 for name in VARIABLES}


def read(path: Path) -> Float:
    """Columns of the network's variables, float64 array [sessions, variables].

    Raises
    ------
    UserError
        When the file can't be read, or lacks a column.
    """
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = f"{path}: not readable as Parquet: {error}"
        raise UserError(f"{reason}: make it with dvc repro qos") from None
    if missing := [name for name in COLUMNS if name not in frame.columns]:
        raise UserError(f"{path}: no column {missing[0]}: make it again with cczoo qos sessions")
    return frame.select(COLUMNS).to_numpy().astype(np.float64)


def scaled(raw: Float) -> Float:
    """Logarithms of those variables that are discretised so."""
    columns = [
        np.log(np.maximum(raw[:, place], one.floor)) if one.floor else raw[:, place]
        for place, one in enumerate(VARIABLES.values())
    ]
    return np.column_stack(columns)


def borders(found: GaussianDiscretizer) -> Borders:
    """Borders of a discretiser fitted to `scaled` values.

    Those of settings lie on the grid of exported code, so that both agree on every number there.
    """
    result = {}
    for (name, one), edges in zip(VARIABLES.items(), found.edges_, strict=True):
        raw = np.exp(edges) if one.floor else edges
        if name in of_group(SETTING):
            raw = np.unique(np.floor(raw * SCALE) / SCALE)
        result[name] = tuple(float(f"{edge:.6g}") if name not in of_group(SETTING) else float(edge)
                             for edge in raw)  # fmt: skip
    return Borders(result)
