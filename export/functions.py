"""Makes models of functions that can be exported without training.

Their names are looked up before anything that takes long: a function imports what it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export.params import Options
    from export.source import Source

WIDEST = 16.0
"""|x| beyond which Nuwa's tanh is one at any number of bits that an export may have."""
STORED = 64


def nuwa_tanh(options: Options) -> Source:
    """Nuwa's trend of the window, ``theta = tanh((T_d - Q_d) / rho)`` (nuwa.txt §IV.B, eq. 5).

    Parameters
    ----------
    options : Options
        ``entries``, ``q``, ``input_q`` (``q`` if None) and ``interpolate``.

    Returns
    -------
    Source
        With the form "lut" and the largest error against ``math.tanh`` in ``quantization_error``.
    """
    import numpy as np

    from export.forms.table import Table
    from export.onnx.graph import tanh_file
    from export.source import Source
    from export.tanh import stated_error, tanh_curve
    from features.spec import Feature

    places = options.q if options.input_q is None else options.input_q
    curve = tanh_curve(places, options.q, options.entries, interpolate=options.interpolate)
    widest = min(WIDEST, math.floor((2**31 - 2) / 2**places * 2**16) / 2**16)
    feature = Feature(
        "x", "1", -widest, widest, 1 << places, "nuwa.txt §IV.B",
        "(target delay - queue delay) / sensitivity",
    )  # fmt: skip
    values = np.linspace(-widest, widest, STORED)[:, None]
    return Source(
        name="nuwa-tanh",
        version="1",
        family="nuwa",
        kind=Table.kind,
        features=(feature,),
        labels=("shrink", "grow"),
        threshold=0.0,
        form=Table((feature,), ("shrink", "grow"), 0, curve),
        no_form="",
        onnx=tanh_file((feature,), "nuwa-tanh", ("shrink", "grow")),
        values=values,
        probability=np.tanh(values[:, 0]),
        quantization_error=dict(stated_error(curve)),
    )


FUNCTIONS: dict[str, Callable[[Options], Source]] = {"nuwa-tanh": nuwa_tanh}
"""Name for ``cczoo export`` -> what makes it from the options."""
