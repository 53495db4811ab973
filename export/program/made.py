"""Makes programs of networks that exist as ONNX alone, when a target needs integers."""

from __future__ import annotations

from dataclasses import replace

from export.loss import in_integers
from export.lower.graph import lower_graph
from export.lower.prepare import NotLowerable
from export.source import Source, with_scale


def with_program(source: Source) -> Source:
    """The model with a form; with the reason why there is none if it can't have one.

    Parameters
    ----------
    source : Source
        Without a form, but with an ONNX file; its observations say how large numbers become.
    """
    try:
        form = lower_graph(
            source.onnx, source.features, source.labels, source.threshold, source.values
        )
    except NotLowerable as error:
        return replace(source, no_form=str(error))
    output = with_scale(source.output, form)
    made = replace(source, form=form, no_form="", kind=form.kind, output=output)
    lost = in_integers(made, source.values, source.probability)
    return replace(made, quantization_error={**source.quantization_error, **lost})
