"""What ``cczoo export`` may be given: a model of the zoo or a function that needs no training."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export.params import Options
    from export.source import Source


def open_source(name: str, options: Options) -> Source:
    """A model by zoo name, directory or ``registry:NAME[@ALIAS]``, or a function by its name.

    Raises
    ------
    UserError
        When there is none, with the nearest name.
    """
    from export.functions import FUNCTIONS
    from pipelines.zoo import open_model, source_of

    if name in FUNCTIONS:
        return FUNCTIONS[name](options)
    return source_of(open_model(name))
