"""The job that the trainings of SmartSBD share: where each reads and writes, its settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from features.sbd import features_of
from models.sbd.computed_with import settings_of
from models.sbd.content import content_hash
from models.sbd.evaluate import splits
from models.sbd.evaluate.holdout import check_trainable, held_out_split, unseen_rows
from models.sbd.params import Params
from models.sbd.rows import training_table
from models.sbd.train import model_specs
from models.sbd.usable import Dropped
from models.sbd.windows import Windows
from models.trained import Progress


def silent(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
    """A loop that shows nothing of how far it is."""
    return items


@dataclass
class Job:
    """Where a training run reads and writes.

    Attributes
    ----------
    features : Path
        Table of ``cczoo features``.
    out : Path
        Directory of result files.
    params : Params
    events : Path, optional
        Ingested directory, which rule-based schemes read.
    zoo : Path, optional
        Where entries go.
    command : str
        The command that is running, for entries and their cards.
    progress : function
        Shows how far a loop is.
    dropped : Dropped
        Rows that were left out of the table, once it is read.
    """

    features: Path
    out: Path
    params: Params
    events: Path | None = None
    zoo: Path | None = None
    command: str = ""
    progress: Progress = silent
    dropped: Dropped = field(default_factory=Dropped)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Feature names per family."""
        return {
            family: [f.name for f in features_of(family)] for family in model_specs.FAMILY_NAMES
        }

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
        known = [feature for family in model_specs.FAMILY_NAMES for feature in features_of(family)]
        return content_hash(self.table, known)

    def content_of(self, family: str) -> str:
        """Content of the table as a model of these features reads it."""
        if family in model_specs.FAMILY_NAMES:
            return self.data_hash
        return content_hash(self.table, features_of(family))

    @cached_property
    def split(self) -> tuple[Windows, Windows]:
        """Rows that kept models learn from, and labelled rows that they don't."""
        return held_out_split(self.table, self.params.protocol)

    def sites(self) -> Windows:
        """The rows of the sites; all but the unseen cases where these lack a class."""
        settings = self.params.protocol
        mask = splits.site_rows(self.table, settings)
        lacking = np.unique(self.table.y[mask]).size < 2
        return self.table.take(~unseen_rows(self.table, settings) if lacking else mask)
