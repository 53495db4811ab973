"""The whole of ``params.yaml``: each layer's own settings, put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from data.errors import UserError
from data.strict import Strict
from export.params import Options, VerifyParams
from features.params import SbdParams
from models.sbd.params import Params as SbdModels
from pipelines.gates import GATES, gate


class FeaturesParams(Strict):
    """Settings of the features layer."""

    sbd: SbdParams = SbdParams()


class ModelsParams(Strict):
    """Settings of the models layer."""

    sbd: SbdModels = SbdModels()

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, tree: Any) -> Any:
        if isinstance(tree, Mapping) and "neural" in tree:
            raise ValueError("neural stands below sbd by now: write models.sbd.neural")
        return tree


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
        Gate -> its settings; one that is left out isn't asked.
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
    """Everything that a pipeline reads; what a file leaves out has its default."""

    features: FeaturesParams = FeaturesParams()
    models: ModelsParams = ModelsParams()
    export: ExportParams = ExportParams()
    promotion: PromotionParams = PromotionParams()


def load(path: Path | None) -> Params:
    """Read and validate a settings file, the defaults without one.

    Raises
    ------
    UserError
        The file is missing, isn't YAML, or a key or value is wrong; the message names the
        key's path and the nearest correct name.
    """
    return Params() if path is None else Params.load(path)
