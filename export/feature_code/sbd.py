"""Generates SmartSBD's features as integer C, ``<identifier>_sbd.h``.

The C computes call by call what :mod:`features.fixed_sbd` computes from a whole connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.schema import CONGESTED_STATES
from export.bundle.manifest import Bundle
from export.feature_code.feed import Feed, build_feed
from export.feature_code.random_calls import random_calls
from export.feature_code.verdicts import integer_verdicts
from export.params import Options, VerifyParams
from export.render import render
from export.source import Source
from features import fixed_series as series
from features.fixed_sbd import (
    POINTS_MAX,
    FixedPairs,
    Quantity,
    evaluate_pairs,
    needs_throughput,
    quantity,
)
from features.fixed_series import Calls
from features.params import SbdParams
from features.sbd import differing
from features.smartsbd import FEATURES
from features.spec import Feature

FIELDS = {"RTT": "rtt_us", "CState": "congested", "Thpt": "rate"}
"""Series -> its array in ``struct sbd_grid``."""
TYPES = {"RTT": "uint32_t", "CState": "uint8_t", "Thpt": "uint32_t"}
WINDOW_MAX_US = 1 << 36
"""The longest window: the largest factor times the largest RTT."""
STRANGER = {
    False: "subflow != 0 && subflow != 1",
    True: "subflow < 0 || subflow >= SBD_SUBFLOWS",
}
"""Condition in C: the subflow isn't one of the state's."""
CONNECTIONS = 40
"""Connections that verification makes up."""


def carries(features: Sequence[Feature]) -> bool:
    """Whether all are of SmartSBD's Table 3, units, scales and ranges included."""
    return {f.meaning for f in features} <= {f.meaning for f in FEATURES}


def settings(source: Source, options: Options) -> dict[str, Any]:
    """The model's settings of windows, and the number of subflows if it isn't two."""
    many = {"subflows": options.subflows} if options.subflows > 2 else {}
    return _windows(source).model_dump() | many


def made_for(bundle: Bundle) -> tuple[SbdParams, int]:
    """Settings of the bundle's model, and the number of subflows of its feature code.

    Raises
    ------
    UserError
        When the manifest holds no such settings, or its feature code has others than the model.
    """
    stated = dict(bundle.manifest["targets"]["c"]["companion"])
    subflows = int(stated.pop("subflows", 2))
    where = f"{bundle.directory}: feature_settings"
    meant = SbdParams.parse(bundle.settings, where)
    if other := differing(stated, meant.model_dump()):
        raise UserError(
            f"{bundle.directory}: its feature code is for windows of another {', '.join(other)} "
            "than the model: export it again"
        )
    return meant, subflows


def _windows(source: Source) -> SbdParams:
    return SbdParams.parse(source.feature_settings, f"{source.name}: feature_settings")


def emit(source: Source, options: Options) -> dict[str, str]:
    """One header, which includes the model's own.

    Raises
    ------
    UserError
        When the settings are more than 64 bits can hold.
    """
    return emit_with(source, options, plus=False, verdicts=None)


def emit_with(source: Source, options: Options, *, plus: bool, **more: Any) -> dict[str, str]:
    """The header of a family whose windows and series are SmartSBD's.

    Parameters
    ----------
    source : Source
    options : Options
    plus : bool
        Whether the features are the scale-free ones; ``more`` is then what their part needs.
    """
    params = _windows(source)
    for name, most in (("max_points", POINTS_MAX), ("min_window_us", WINDOW_MAX_US)):
        if (given := getattr(params, name)) > most:
            raise UserError(
                f"{source.name}: its features have {name} {given}, exported ones {most} at most: "
                "train it with less in features.sbd, or export without -t c"
            )
    many = options.subflows > 2
    if many and "SB" not in source.labels:
        raise UserError(
            f"subflows={options.subflows}: {source.name} has the classes "
            f"{', '.join(source.labels)}: one must be SB"
        )
    quantities = [] if plus else [(f.name, quantity(f)) for f in source.features]
    parts = {
        kind: list(dict.fromkeys(q.parts for _, q in quantities if q.kind == kind))
        for kind in ("ED", "DTWD", "SD_Ratio")
    }
    apart, warped_series, spreads = (_series_of(parts[kind]) for kind in parts)
    text = render(
        "sbd.h.j2",
        source=source,
        many=many,
        plus=plus,
        subflows=options.subflows,
        n="SBD_SUBFLOWS" if many else "2",
        first="wifi" if many else "0",
        second="other" if many else "1",
        fills="s->phase == SBD_FILLS" + (" && s->members >> subflow & 1" if many else ""),
        stranger=STRANGER[many],
        params=params,
        quantities=quantities,
        warped=parts["DTWD"],
        warped_series=warped_series,
        apart=apart,
        spreads=spreads,
        distances=bool(apart or warped_series),
        min_rtt=any(q.kind == "Min_RTT_Ratio" for _, q in quantities),
        thpt=needs_throughput(source.features),
        states="CState" in {*apart, *warped_series, *spreads},
        distance=_distance_numbers(),
        ratio=_ratio_numbers(),
        fields=FIELDS,
        types=TYPES,
        congested_states=CONGESTED_STATES,
        ewma_q16=series.ewma_q16(params),
        value_max=series.VALUE_MAX,
        time_max=series.TIME_MAX,
        state_step=series.STATE_STEP,
        thpt_bps=series.THROUGHPUT_BPS,
        newly_max=series.NEWLY_ACKED_MAX,
        sample_max=series.SAMPLE_MAX,
        far_bits=series.FAR_BITS,
        far_shift=series.FAR_SHIFT,
        **more,
    )
    return {header_name(source.identifier): text}


def header_name(identifier: str) -> str:
    """File name of a model's feature code."""
    return f"{identifier}_sbd.h"


def prove(bundle: Bundle, params: VerifyParams, work: Path) -> dict[str, Any]:
    """Feed made-up connections, tame and hostile, and compare every window."""
    window, subflows = made_for(bundle)
    feed = feed_of(bundle, work, params.timeout_s)
    made, wanted = _connections(params.seed, window, subflows, bundle.features)
    windows = mismatches = 0
    for meant, answer in zip(wanted, feed.run(made, params.timeout_s), strict=True):
        classes = _classes(bundle, meant.x)
        windows += len(meant.window)
        mismatches += answer.unlike(meant, classes, meant_verdicts(bundle, meant.x))
    return {
        "windows": windows,
        "mismatches": mismatches,
        "flags": feed.flags,
        "object_bytes": feed.object_bytes,
        "stack_bytes": feed.stack_bytes,
        "state_bytes": feed.state_bytes,
    }


@lru_cache(maxsize=4)
def _connections(
    seed: int, window: SbdParams, subflows: int, features: tuple[Feature, ...]
) -> tuple[list[tuple[Calls, int]], list[FixedPairs]]:
    """Made-up connections with their Wi-Fi subflows, and the features meant of each.

    No model is in them, so models that are proved one after the other share them.
    """
    rng = np.random.default_rng(seed)
    made = [
        (random_calls(rng, window, subflows), int(rng.integers(-1, subflows)))
        for _ in range(CONNECTIONS)
    ]
    return made, [evaluate_pairs(*one, subflows, window, features) for one in made]


def feed_of(bundle: Bundle, work: Path, timeout_s: float) -> Feed:
    """A bundle's feature code compiled as a kernel would, for its number of subflows."""
    made_of = (bundle.directory, bundle.identifier, work, timeout_s)
    _, subflows = made_for(bundle)
    return build_feed(*made_of, features=len(bundle.features), subflows=subflows)


def meant_verdicts(bundle: Bundle, x: np.ndarray[Any, Any]) -> list[int] | None:
    """Verdicts after each of a connection's windows, of which ``x`` are the features.

    None for a model whose verdicts don't travel.
    """
    settings = integer_verdicts(bundle.manifest.get("verdicts", {}), bundle.form)
    if settings is None or bundle.form is None:
        return None
    return settings.run(bundle.form.evaluate(x).scores.tolist())


def _classes(bundle: Bundle, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if bundle.form is None:
        raise ValueError("feature code is only made beside a form")
    return bundle.form.evaluate(x).classes


def _series_of(parts: Sequence[tuple[str, ...]]) -> list[str]:
    """Series that occur, in the order of their names in Table 3."""
    return [name for name in FIELDS if any(name in some for some in parts)]


def _distance_numbers() -> dict[str, int]:
    """``isqrt(square * num / den)`` is twice a distance's scaled value."""
    q = _one("DTWD")
    num, den = q.gain.numerator, q.gain.denominator
    whole_max = (2 * q.high) ** 2 // num
    if not (num * den < 2**64 and (whole_max + 1) * num < 2**64):
        raise ValueError("distances: the scale leaves no room in 64 bits")
    return {
        "num": num,
        "den": den,
        "whole_max": whole_max,
        "scale": q.scale,
        "high": q.high,
        "unit_us": series.STATE_STEP,
    }


def _ratio_numbers() -> dict[str, int]:
    """Twice a ratio's scale is a power of two: its square comes bit by bit."""
    q = _one("SD_Ratio")
    bits = 2 * (2 * q.scale).bit_length() - 2
    whole_max = (q.high // q.scale) ** 2
    if 1 << bits != (2 * q.scale) ** 2 or isqrt(whole_max) * q.scale != q.high:
        raise ValueError("ratios: scale and range must be powers of two")
    return {"bits": bits, "whole_max": whole_max, "scale": q.scale, "high": q.high}


def _one(kind: str) -> Quantity:
    """What all features of a kind share."""
    shared = {(q.scale, q.high): q for q in map(quantity, FEATURES) if q.kind == kind}
    (only,) = shared.values()
    return only
