"""What the trainings of SmartSBD share: where each reads and writes, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.files import write_text
from features.sbd import features_of
from models.sbd.content import content_hash
from models.sbd.evaluate import splits
from models.sbd.evaluate.holdout import check_trainable, unseen_rows
from models.sbd.params import Params
from models.sbd.train import recipes
from models.sbd.usable import Dropped
from models.sbd.windows import Windows
from pipelines.computed_with import settings_of
from pipelines.params import load as load_settings
from pipelines.rows import training_table


@dataclass
class Job:
    """Where a training run reads and writes."""

    features: Path
    out: Path
    params: Params
    events: Path | None = None
    zoo: Path | None = None
    dropped: Dropped = field(default_factory=Dropped)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Feature names per family."""
        return {family: [f.name for f in features_of(family)] for family in recipes.FAMILY_NAMES}

    @cached_property
    def table(self) -> Windows:
        """Labelled rows with finite features of both families; says what it leaves out.

        Raises
        ------
        UserError
            When windows are there twice, or nothing is left to learn from.
        """
        both = [name for names in self.names.values() for name in names]
        table, self.dropped = training_table(self.features, both)
        check_trainable(table, self.params.protocol, str(self.features))
        return table

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the table's features were computed with: a part of every model trained on it."""
        return settings_of(self.features).model_dump()

    @cached_property
    def data_hash(self) -> str:
        """Content of the table, see `models.sbd.content`."""
        known = [feature for family in recipes.FAMILY_NAMES for feature in features_of(family)]
        return content_hash(self.table, known)

    def sites(self) -> Windows:
        """The rows of the sites; all but the unseen cases where these lack a class."""
        settings = self.params.protocol
        mask = splits.site_rows(self.table, settings)
        lacking = np.unique(self.table.y[mask]).size < 2
        return self.table.take(~unseen_rows(self.table, settings) if lacking else mask)

    def write(self, name: str, value: Any) -> None:
        """Write one result table as JSON, whole or not at all."""
        self.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_plain(value), indent=1, allow_nan=False) + "\n"
        write_text(self.out / name, text)

    def read(self, name: str) -> Any:
        """Read a result table of an earlier step."""
        path = self.out / name
        if not path.is_file():
            raise UserError(f"{path}: missing: run the earlier steps of `cczoo train sbd` first")
        return json.loads(path.read_text(encoding="utf-8"))


def load_params(path: Path | None, seed: int | None = None) -> Params:
    """Settings from ``models.sbd`` of a YAML file, defaults without one."""
    settings = load_settings(path).models.sbd
    return settings if seed is None else settings.model_copy(update={"seed": seed})


def _plain(value: Any) -> Any:
    """JSON-ready: settings models as dicts, NaN as null, numpy scalars as numbers."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    return value
