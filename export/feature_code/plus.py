"""Generates the scale-free features for a kernel as integer C, ``<identifier>_sbd.h``.

Windows and series are made by the code that :mod:`export.feature_code.sbd` generates for SmartSBD's
own features; what is computed from them call by call is what :mod:`features.fixed_plus` computes
from a whole connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.errors import UserError
from export.bundle.manifest import Bundle
from export.feature_code import sbd
from export.feature_code.verdicts import integer_verdicts, verdict_files
from export.params import Options, VerifyParams
from export.source import Source
from features import fixed_numbers as numbers
from features import fixed_plus as plus
from features import smartsbd_kernel
from features.params import SbdParams
from features.spec import Feature


def carries(features: Sequence[Feature]) -> bool:
    """Whether all are of this family, units, scales and ranges included."""
    return smartsbd_kernel.holds(features)


def settings(source: Source, options: Options) -> dict[str, Any]:
    """The model's settings of windows."""
    return sbd.settings(source, options)


def emit(source: Source, options: Options) -> dict[str, str]:
    """One header, which includes the model's own.

    Raises
    ------
    UserError
        When it is asked for more than two subflows, features look back otherwise than the code,
        or the settings are more than 64 bits hold.
    """
    if options.subflows > 2:
        raise UserError(
            f"subflows={options.subflows}: the features of {source.name} compare two subflows: "
            "export it without --set subflows, or a model of the family smartsbd"
        )
    windows = SbdParams.parse(source.feature_settings, source.name).history_windows
    if windows != plus.BLOCKS - 1:
        raise UserError(
            f"{source.name}: its features look back {windows} windows, the code for a kernel "
            f"{plus.BLOCKS - 1}: train it with features.sbd.history_windows={plus.BLOCKS - 1}"
        )
    verdicts = integer_verdicts(source.verdicts, source.form)
    used = [feature.name.removeprefix(smartsbd_kernel.PREFIX) for feature in source.features]
    header = sbd.emit_with(
        source,
        options,
        plus=True,
        verdicts=verdicts,
        used=used,
        long=any(name.startswith("Long_") for name in used),
        prefix=smartsbd_kernel.PREFIX,
        blocks=plus.BLOCKS,
        block_points=plus.POINTS,
        value_bits=plus.VALUE_BITS,
        level_bits=plus.LEVEL_BITS,
        mean_bits=plus.MEAN_BITS,
        low_pass=plus.LOW_PASS_RTTS,
        floor_parts=plus.FLOOR_PARTS,
        most=numbers.QUOTIENT_MOST,
        quotient_bits=numbers.QUOTIENT_BITS,
        root_bits=numbers.ROOT_BITS,
        ln2_q16=numbers.LN2_Q16,
    )
    return header | verdict_files(source)


def prove(bundle: Bundle, params: VerifyParams, work: Path) -> dict[str, Any]:
    """Feed made-up connections, tame and hostile, and compare every window."""
    return sbd.prove(bundle, params, work)
