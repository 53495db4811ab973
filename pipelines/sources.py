"""Open what a command is given: a model, a policy, an ONNX file, or a function."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

MODEL = "name in the zoo, a directory, or registry:NAME[@ALIAS|/VERSION][?group=GROUP]"
"""Help text for an argument that names a model."""

if TYPE_CHECKING:
    from export.params import Options
    from export.source import Source
    from models.store import ZooModel


def open_model(name: str, zoo: Path | None = None) -> ZooModel:
    """Open a model; every command that takes a model takes the same names.

    Parameters
    ----------
    name : str
        A zoo name, a directory or ``registry:NAME[@ALIAS|/VERSION][?group=GROUP]``.
    zoo : Path, optional
        Another zoo than the repository's.

    Raises
    ------
    UserError
        When there is none, with the nearest name.
    """
    from models.store import load

    if not name.startswith("registry:"):
        return load(name, zoo)
    from pipelines.registry.entries import fetch_entry

    return load(Path(fetch_entry(name)))


def open_source(name: str, options: Options) -> Source:
    """Open the model, ONNX file or function that a name stands for.

    Parameters
    ----------
    name : str
        A zoo name, a model's directory, ``registry:NAME[@ALIAS]``, an ONNX file whose metadata
        describe its features, or a function's name.
    options : Options
        Export options, which a function is built with.

    Raises
    ------
    UserError
        When there is none, with the nearest name.
    """
    from export.functions import FUNCTIONS
    from export.source import source_of
    from models.policies import ENTRY

    if name in FUNCTIONS:
        return FUNCTIONS[name](options)
    if name.endswith(".onnx"):
        from export.onnx.source import source_from_onnx

        return source_from_onnx(Path(name))
    model = open_model(name)
    if ENTRY in model.meta.files and "model.onnx" not in model.meta.files:
        return policy_source(model, options)
    return source_of(model)


def policy_source(model: ZooModel, options: Options) -> Source:
    """A policy's entry as exporters take it, for as many subflows as the options say."""
    from export.policy.source import source_of_policy

    return source_of_policy(model, options.parts)
