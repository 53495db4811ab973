"""Compare a candidate with the champion; each measurement is made when a gate asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.budget import FIGURES, cost
from models.families import family, kind_of, name_of
from models.policies import ENTRY

if TYPE_CHECKING:
    from data.strict import Strict
    from models.judged import Pairing
    from models.store import ZooModel


@dataclass(frozen=True)
class Comparison:
    """Candidate and champion with everything that gates judge by.

    Attributes
    ----------
    name : str
        Registered name.
    candidate, champion : ZooModel
        Entries as fetched; no champion before the first promotion.
    data : Path, optional
        Data with the test; by default the file that ``make repro`` makes for the family. If there
        is no such file, the tests stored with the models are used.
    settings_of : function
        Name of a family of models -> its settings, which decide what the test is.
    only : dict
        Attribute -> value, to restrict the test of a group's model to that group.
    """

    name: str
    candidate: ZooModel
    champion: ZooModel | None
    data: Path | None
    settings_of: Callable[[str], Strict]
    only: dict[str, str]

    @cached_property
    def pairing(self) -> Pairing:
        """Measure both models on the same test, as their family pairs them.

        Raises
        ------
        UserError
            When the models are of two families, or the family finds nothing to test on.
        """
        from export.decisions import deployed
        from models.judged import Asked

        self.check_alike()
        name = name_of(self.candidate.meta)
        chosen, params = family(name), self.settings_of(name)
        data = self.data or chosen.data(self.candidate.meta.family)
        asked = Asked(self.name, data, params, self.only, deployed)
        return chosen.paired(self.candidate, self.champion, asked)

    def check_alike(self) -> None:
        """Refuse to compare models of two families.

        Raises
        ------
        UserError
            When they are.
        """
        name = kind_of(self.candidate.meta)
        if self.champion is not None and kind_of(self.champion.meta) != name:
            raise UserError(
                f"{self.name}: the champion is of the family {kind_of(self.champion.meta)}, the "
                f"candidate of {name}: register it under another name"
            )

    @cached_property
    def _proofs(self) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
        return {}

    def proof(self, model: ZooModel, targets: Sequence[str]) -> dict[str, Any]:
        """Certificate of a model's bundle, which is exported and proved now, once."""
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
        """Costs of the model as C, from a proof made already or else from one of C alone.

        A policy is played as its network: its cost is that of a decision in torch (us). A champion
        that can't be opened any more has none: the control gate says so.
        """
        if ENTRY in model.meta.files:
            from models.closedloop import Player
            from models.policies.entry import of_entry

            try:
                return {"decision_us": Player(of_entry(model)).decision_us}
            except UserError:
                if model is not self.champion:
                    raise
                return {}
        known = [proof for key, proof in self._proofs.items() if key[0] == str(model.directory)]
        measured = [t for proof in known for t in proof["targets"] if t["target"] == "c"]
        measured = measured or self.proof(model, ["c"])["targets"]
        return {key: cost(target, key) for target in measured[:1] for key in FIGURES}
