"""The whole of ``params.yaml``: each layer's own settings, put together."""

from __future__ import annotations

from pathlib import Path

from data.strict import Strict
from export.params import Options, VerifyParams
from features.params import SbdParams
from models.sbd.params import Params as SbdModels


class FeaturesParams(Strict):
    """Settings of the features layer."""

    sbd: SbdParams = SbdParams()


class ModelsParams(Strict):
    """Settings of the models layer."""

    sbd: SbdModels = SbdModels()


class ExportParams(Strict):
    """Settings of the export layer."""

    options: Options = Options()
    verify: VerifyParams = VerifyParams()


class Params(Strict):
    """Everything that a pipeline reads; what a file leaves out has its default."""

    features: FeaturesParams = FeaturesParams()
    models: ModelsParams = ModelsParams()
    export: ExportParams = ExportParams()


def load(path: Path | None) -> Params:
    """Read and validate a settings file, the defaults without one.

    Raises
    ------
    UserError
        The file is missing, isn't YAML, or a key or value is wrong; the message names the
        key's path and the nearest correct name.
    """
    return Params() if path is None else Params.load(path)
