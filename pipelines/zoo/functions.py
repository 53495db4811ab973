"""Zoo entries of functions that need no training: tables, proved over every input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.description import describe

if TYPE_CHECKING:
    from export.source import Source
    from models.store import ZooModel


def write(name: str, zoo: Path) -> Path:
    """Write the entry of one of `export.functions.FUNCTIONS`; returns its directory."""
    from export.functions import FUNCTIONS
    from export.params import Options

    source = FUNCTIONS[name](Options())
    if source.form is None:
        raise ValueError(f"{name} has no integer form to keep")
    error = _told(source.quantization_error)
    origin = {
        "family": source.family,
        "version": source.version,
        "created_by": f"cczoo zoo release {name}",
    }
    metrics = {"headline": {}, "error": error}
    return describe(
        replace(source, quantization_error=error), origin, metrics, _card(source)
    ).write(zoo)


def verify(model: ZooModel) -> dict[str, Any]:
    """Find the error of the stored table anew, over every input that it may get.

    Returns
    -------
    dict
        ``vectors`` (inputs tried), ``mismatches`` (stored observations whose answer differs by
        more than the stated error), ``error`` and ``problems``.
    """
    import numpy as np

    from export.fixed import to_integers
    from export.forms.table import Table
    from export.source import source_of
    from export.tanh import stated_error

    source = source_of(model)
    if not isinstance(source.form, Table):
        raise UserError(f"{model.directory}: neither a model nor a function's table: restore it")
    found, stated = stated_error(source.form.curve), model.meta.scaling
    now, told = _told(found), _told(stated)
    problems = [
        f"{key} is {now.get(key)} now and {value} in meta.json"
        for key, value in told.items()
        if now.get(key) != value
    ]
    scores = source.form.evaluate(to_integers(source.values, source.features)).scores
    answers = scores.reshape(-1) / 2.0**source.form.curve.q
    limit = float(stated.get("largest_error", stated["error_bound"]))
    # Observations are rounded to the table's input before it sees them; tanh is at most as steep
    # as that rounding.
    limit += 0.5 / source.features[0].scale
    mismatches = int((~(np.abs(answers - source.probability) <= limit)).sum())
    if mismatches:
        problems.append(f"{mismatches} stored answers differ")
    return {
        "vectors": int(found["inputs_tried"]) or len(answers),
        "mismatches": mismatches,
        "error": found,
        "problems": problems,
    }


def _told(error: Mapping[str, Any]) -> dict[str, Any]:
    """Errors with four significant digits: tanh itself differs in its last ones by machine."""
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in error.items()}


def _card(source: Source) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from export.forms.table import Table

    if not isinstance(source.form, Table):
        raise ValueError(f"{source.name} is no table")
    # Markdown, not HTML: escaping would spoil it.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    return environment.get_template("functions.md.j2").render(
        name=source.name,
        error=source.quantization_error,
        curve=source.form.curve,
        step=source.features[0].scale,
        schema_hash=source.schema_hash,
        command=f"cczoo zoo release {source.name}",
    )
