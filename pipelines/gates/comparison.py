"""A candidate beside the champion on one test set, measured when a gate asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.budget import FIGURES, cost
from features.sbd import differing
from models.sbd.evaluate import testset
from models.sbd.params import Protocol
from models.sbd.windows import Windows, attributes, read, windows
from models.stats.intervals import by_connection
from models.store import ZooModel
from pipelines.computed_with import check


@dataclass(frozen=True)
class TestSet:
    """Rows on which both models are judged.

    Attributes
    ----------
    table : Windows
    what : str
        Where the rows come from, for people.
    """

    table: Windows
    what: str

    __test__ = False


@dataclass(frozen=True)
class Paired:
    """Right answers of both models on the same things (windows or connections), 0 or 1, (N,)."""

    candidate: NDArray[np.float64]
    champion: NDArray[np.float64] | None
    group: NDArray[np.int64]

    def where(self, mask: NDArray[np.bool_]) -> Paired:
        """Some of them."""
        champion = None if self.champion is None else self.champion[mask]
        return Paired(self.candidate[mask], champion, self.group[mask])

    def figures(self) -> dict[str, Any]:
        """How many, both means, their difference; without a champion the candidate's interval."""
        found: dict[str, Any] = {"count": len(self.candidate)}
        found["candidate"] = float(self.candidate.mean())
        if self.champion is None:
            return found | {"interval": by_connection(self.candidate, self.group)}
        found["champion"] = float(self.champion.mean())
        return found | {"difference": by_connection(self.candidate - self.champion, self.group)}


@dataclass(frozen=True)
class Comparison:
    """What gates look at.

    Attributes
    ----------
    name : str
        Registered name.
    candidate, champion : ZooModel
        Entries as fetched; no champion before the first promotion.
    features : Path
        Table of `cczoo features sbd`; where it is missing the stored samples are used.
    protocol : Protocol
        Which of its rows are the test set.
    only : dict
        Attribute -> value, for the model of a group.
    """

    name: str
    candidate: ZooModel
    champion: ZooModel | None
    features: Path
    protocol: Protocol
    only: dict[str, str]

    @property
    def models(self) -> list[ZooModel]:
        """Candidate and, where there is one, champion."""
        return [m for m in (self.candidate, self.champion) if m is not None]

    @cached_property
    def names(self) -> list[str]:
        """Features that any of the models needs."""
        return sorted({name for model in self.models for name in model.meta.features})

    @cached_property
    def test(self) -> TestSet:
        """The fixed test set.

        Raises
        ------
        UserError
            When no row is left, or a model's windows are others than the table's or the
            champion's.
        """
        self._one_kind_of_window()
        if self.features.is_file():
            for model in self.models:
                check(self.features, model)
            table = testset.fixed(windows(read(self.features)), self.protocol)
            table = table.take(table.finite(self.names))
            what = f"{self.features}: {self.protocol.unseen} and held-out connections"
        else:
            table = self._stored()
            what = "samples stored with the models"
        for column, value in self.only.items():
            table = table.take(table.column(column) == value)
            what += f", {column} = {value}"
        if not len(table):
            raise UserError(f"{what}: no labelled row to test on: give --features FILE")
        return TestSet(table, what)

    def _one_kind_of_window(self) -> None:
        """Refuse to pair answers on windows that aren't the same."""
        if self.champion is None:
            return
        mine, other = (model.meta.feature_settings for model in (self.candidate, self.champion))
        if names := differing(mine, other):
            raise UserError(
                f"{self.name}: the candidate's windows are of another {', '.join(names)} than the "
                "champion's: they can't be compared: register it under another name"
            )

    def _stored(self) -> Windows:
        """Rows that the samples of all models share."""
        frame = None
        for model in self.models:
            if testset.FILE not in model.meta.files:
                raise UserError(
                    f"{self.features}: no such table, and {model.directory} has no {testset.FILE} "
                    "to test on instead: give --features FILE of `cczoo features sbd`"
                )
            own = testset.read(model.read_json(testset.FILE)).frame
            if frame is None:
                frame = own
                continue
            key = ["connection", "window", "label"]
            new = [c for c in own.columns if c in key or c not in frame.columns]
            frame = frame.join(own.select(new), on=key, how="inner")
        assert frame is not None
        return windows(frame)

    @cached_property
    def columns(self) -> list[str]:
        """Attributes by which the test set can be broken down."""
        from features.sbd import FAMILIES, features_of

        known = [feature.name for family in FAMILIES for feature in features_of(family)]
        return attributes(self.test.table.frame, known)

    @cached_property
    def _hits(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Windows as the kernel answers them (integers, where there are any), connections."""
        from export.fixed import to_integers
        from export.source import source_of
        from models.sbd.accumulate import verdicts_of

        found = []
        for model in self.models:
            table, meta, form = self.test.table, model.meta, source_of(model).form
            values = table.matrix(meta.features)
            probability = model.predict_proba(values)
            classes = (probability > meta.threshold).astype(np.int64)
            if form is not None:
                classes = form.evaluate(to_integers(values, model.features)).classes
            verdicts = verdicts_of(meta.calibration, meta.accumulation)
            right = testset.right_connections(table, probability, verdicts)
            found.append(((classes == table.y).astype(np.float64), right.astype(np.float64)))
        return found

    @cached_property
    def windows(self) -> Paired:
        """Right answers per window."""
        hits = [window for window, _ in self._hits]
        return Paired(hits[0], hits[1] if self.champion else None, self.test.table.group)

    @cached_property
    def connections(self) -> Paired:
        """Right answers per connection."""
        hits = [connection for _, connection in self._hits]
        return Paired(hits[0], hits[1] if self.champion else None, np.unique(self.test.table.group))

    @cached_property
    def _proofs(self) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
        return {}

    def proof(self, model: ZooModel, targets: Sequence[str]) -> dict[str, Any]:
        """Certificate of a model's bundle, exported and verified now; made once."""
        key = (str(model.directory), tuple(targets))
        if key not in self._proofs:
            from export.proof import prove
            from export.source import source_of
            from export.targets import fitting

            source = source_of(model)
            carried = fitting(source)
            chosen = [target for target in targets if target in carried]
            made = prove(source, chosen, f"cczoo promote {model.meta.name}")
            self._proofs[key] = json.loads(made.certificate)
        return self._proofs[key]

    def costs(self, model: ZooModel) -> dict[str, Any]:
        """What the model costs as C, from a proof that there is already or from one of C alone."""
        known = [proof for key, proof in self._proofs.items() if key[0] == str(model.directory)]
        measured = [t for proof in known for t in proof["targets"] if t["target"] == "c"]
        measured = measured or self.proof(model, ["c"])["targets"]
        return {key: cost(target, key) for target in measured[:1] for key in FIGURES}
