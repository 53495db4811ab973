"""Zoo entries of functions that need no training: tables whose error is found over all inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.description import describe
from models import card
from models.origin import Origin

if TYPE_CHECKING:
    from export.source import Source
    from models.store import ZooModel

SUMMARY = (
    "Nuwa's trend of the window, theta = tanh((T_d − Q_d) / rho), as a table of fixed-point "
    "numbers\n(nuwa.txt section IV.B, equation 5): code in a kernel has no floating point."
)
INPUT = "x: target delay less queueing delay, over the sensitivity rho"
PURPOSE = """\
The receiver's computation of its advertised window in Nuwa: above 0 the window grows, below it
shrinks, the more the further the queueing delay is from its target. Any other use of tanh on
numbers of this range will do as well; other sizes: `cczoo export nuwa-tanh -t lut --set entries=N
--set q=BITS`."""


def write(name: str, zoo: Path) -> Path:
    """Write the entry of one of `export.functions.FUNCTIONS`; returns its directory."""
    from export.functions import FUNCTIONS
    from export.params import Options

    source = FUNCTIONS[name](Options())
    if source.form is None:
        raise ValueError(f"{name} has no integer form to keep")
    error = _rounded(source.quantization_error)
    origin = Origin(source.family, f"cczoo zoo release {name}", source.feature_settings)
    found = describe(
        # Its ONNX form is that of the function itself, made anew by each export.
        replace(source, quantization_error=error, onnx=b""),
        {**origin.meta(), "version": source.version},
        {"headline": {}, "error": error},
        _card(source, origin),
    )
    return found.write(zoo)


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
    found, stated = stated_error(source.form.curve), model.meta.quantization_error
    now, before = _rounded(found), _rounded(stated)
    problems = [
        f"{key} is {now.get(key)} now and {value} in meta.json"
        for key, value in before.items()
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


def _rounded(error: Mapping[str, Any]) -> dict[str, Any]:
    """Errors with four significant digits: the last ones of tanh itself differ by machine."""
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in error.items()}


def _card(source: Source, origin: Origin) -> str:
    from export.forms.table import Table

    if not isinstance(source.form, Table):
        raise ValueError(f"{source.name} is no table")
    curve, step = source.form.curve, source.features[0].scale
    lines = " with a line between them" if curve.frac else ""
    made = card.Made(
        kind=f"function, table of {len(curve.entries)} entries{lines}, {curve.q} fractional bits",
        features=(INPUT,),
        count=1,
        trained_on="nothing: it is a function",
        schema_hash=source.schema_hash,
        origin=origin,
    )
    return card.render(
        card.Card(
            title=source.name,
            summary=SUMMARY,
            facts=card.facts(made),
            purpose=PURPOSE,
            figures=(
                card.Table(
                    tuple(_figures(source.quantization_error)),
                    after=f"`cczoo zoo verify {source.name}` tries every input again. The paper "
                    "gives no error of its own table.",
                ),
            ),
            limits=(
                "The error is that of the table for the input as it was rounded to "
                f"1/{step}; rounding the input adds\n  at most 1/{2 * step}, where tanh is "
                "steepest.",
                "It is one function of Nuwa, not its agent.",
            ),
            spaced=False,
        )
    )


def _figures(error: Mapping[str, Any]) -> Iterator[card.Row]:
    every = ": every one before the table's end; beyond it the answer is ±1"
    yield "Inputs tried", f"{error['inputs_tried']}{every if error['every_input_tried'] else ''}"
    if "largest_error" in error:
        yield "Largest error against tanh", f"{error['largest_error']:.2e}"
    yield "Proved bound of the error", f"{error['error_bound']:.2e}"
