"""What the trainings of SmartSBD share: where each reads and writes, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from features.sbd import features_of
from models.sbd.computed_with import settings_of
from models.sbd.content import content_hash
from models.sbd.evaluate import splits
from models.sbd.evaluate.holdout import check_trainable, unseen_rows
from models.sbd.params import Params
from models.sbd.train import recipes
from models.sbd.usable import Dropped
from models.sbd.windows import Windows
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


def load_params(path: Path | None, seed: int | None = None) -> Params:
    """Settings from ``models.sbd`` of a YAML file, defaults without one."""
    settings: Params = load_settings(path).models.sbd
    return settings if seed is None else settings.model_copy(update={"seed": seed})
