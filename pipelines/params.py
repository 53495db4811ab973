"""Settings of all of ``params.yaml``, put together from each layer's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model, field_validator, model_validator

from data.errors import UserError
from data.strict import Strict
from export.params import Options, VerifyParams
from features.params import SbdParams
from models.families import FAMILIES, settings_of
from pipelines.gates import GATES, gate
from pipelines.rl.budget import AgentsParams


class FeaturesParams(Strict):
    """Settings of the features layer."""

    sbd: SbdParams = SbdParams()


class ModelsBase(Strict):
    """Settings of the models layer: a field for each family, with the family's own settings."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, tree: Any) -> Any:
        if isinstance(tree, Mapping) and "neural" in tree:
            raise ValueError("neural stands below sbd by now: write models.sbd.neural")
        return tree

    def of(self, name: str) -> Strict:
        """Settings of one family."""
        settings: Strict = getattr(self, name)
        return settings


def _every_family() -> dict[str, Any]:
    return {name: (settings_of(name), settings_of(name)()) for name in FAMILIES}


ModelsParams = create_model("ModelsParams", __base__=ModelsBase, **_every_family())


class ExportParams(Strict):
    """Settings of the export layer."""

    options: Options = Options()
    verify: VerifyParams = VerifyParams()


def _every_gate() -> dict[str, dict[str, Any]]:
    return {name: {} for name in GATES}


class PromotionParams(Strict):
    """Settings of ``cczoo promote``.

    Attributes
    ----------
    gates : mapping
        Gate -> its settings; a gate that is left out isn't asked.
    """

    gates: dict[str, dict[str, Any]] = Field(default_factory=_every_gate)

    @field_validator("gates")
    @classmethod
    def _known(cls, gates: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        try:
            for name, tree in gates.items():
                gate(name).Settings.parse(tree, name)
        except UserError as error:
            # As a mistake of the whole file, so that the message names it.
            raise ValueError(str(error)) from None
        return gates


class Params(Strict):
    """All settings that a pipeline reads; what a file leaves out has its default."""

    features: FeaturesParams = FeaturesParams()
    models: ModelsParams = ModelsParams()
    export: ExportParams = ExportParams()
    promotion: PromotionParams = PromotionParams()
    agents: AgentsParams = AgentsParams()


def load(path: Path | None) -> Params:
    """Read and validate a settings file; without one, take the defaults.

    Raises
    ------
    UserError
        When the file is missing, isn't YAML, or a key or value is wrong; the message names the
        key's path and the nearest correct name.
    """
    return Params() if path is None else Params.load(path)
