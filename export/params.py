"""Defines the settings of the export layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from data.strict import Strict
from features.params import SbdParams

Rows = Annotated[int, Field(ge=1, le=2**31 - 1)]


WORST_FLOAT_ERROR = 0.01
"""Largest error of a probability: above it a float model is neither released nor proved."""
WORST_INT8_ERROR = 0.5
"""What 8-bit weights may cost at most, of a probability or score."""
DIFFERING = 0.01
"""Share of observations on which a float model may decide otherwise than the integer form beside
it, for inputs between two integers and float32 sums; the released models do so on none of 2000."""
DIFFERING_INT8 = 0.05
"""The same with 8-bit weights, for policies between nearly equal scores."""


def differing_at_most(rows: int, int8: bool = False) -> int:
    """How many of ``rows`` decisions of a float model may differ from the form's, at least one."""
    return max(1, int(rows * (DIFFERING_INT8 if int8 else DIFFERING)))


class Options(Strict):
    """Options of targets (``cczoo export --set KEY=VALUE``)."""

    layout: Literal["auto", "if-else", "array"] = Field(
        "auto", description="trees in C: if-else, array, or the faster (a tree: if-else)"
    )
    bpf: Literal["if-else", "map", "both"] = Field(
        "both", description="eBPF: if-else (code), map (replaceable at run time), both if possible"
    )
    entries: int = Field(4097, ge=1, le=2**24, description="lut: entries of a function's table")
    q: int = Field(12, ge=0, le=64, description="lut: fractional bits of a function's values")
    input_q: int | None = Field(
        None, ge=0, le=64, description="lut: fractional bits of its input (as q)"
    )
    interpolate: bool = Field(True, description="lut: a line between entries, else the nearest")
    cells: int = Field(
        4096, ge=1, le=2**24, description="lut: cells of a tabulated policy, at most"
    )
    grid: Literal["fit", "quantile", "even"] = Field(
        "fit", description="lut: edges of a policy's cells: fit to it, by quantile, or even"
    )
    batch: Literal["dynamic"] | Rows | None = Field(
        None, description="onnx: rows that the model takes, or dynamic (as the model has it)"
    )
    int8: bool = Field(False, description="onnx: 8-bit weights, with the loss measured")
    subflows: int = Field(
        2, ge=2, le=8, description="c: subflows of a connection; from 3 on with sbd_partition()"
    )
    parts: int | None = Field(
        None, ge=1, le=8, description="subflows of a policy (as many as it was trained for)"
    )
    depth: int | None = Field(
        None, ge=1, le=10_000, description="pass: the deepest comparison that a tree may have"
    )
    nodes: int | None = Field(
        None, ge=1, le=2**31, description="pass: the most nodes that all trees may have together"
    )
    bits: int | None = Field(
        None, ge=1, le=64, description="pass: bits of a threshold, leaf or coordinate"
    )
    vectors: int | None = Field(None, ge=1, le=2**31, description="pass: the most support vectors")

    @model_validator(mode="before")
    @classmethod
    def _of_the_model(cls, tree: Any) -> Any:
        known = {"sbd", *SbdParams.model_fields}
        if isinstance(tree, Mapping) and (given := sorted(known & {str(key) for key in tree})):
            raise ValueError(
                f"{given[0]}: windows are the model's own: train it on features with other "
                "settings (features.sbd)"
            )
        return tree


class VerifyParams(Strict):
    """How much verification tries.

    Attributes
    ----------
    random : int
        Random vectors within the features' ranges, and as many over all of 32 bits.
    seed : int
        Seeds every random choice.
    timeout_s : float
        For one compilation or one run.
    tolerance : float
        Absolute difference of a float target's probability from the trained model's.
    """

    random: int = Field(2000, ge=0, le=10_000_000)
    seed: int = Field(20, ge=0, le=2**31 - 1)
    timeout_s: float = Field(600.0, gt=0, le=86_400)
    tolerance: float = Field(1e-5, ge=0, le=1)


def tolerance_of(quantization_error: Mapping[str, Any], least: float) -> float:
    """Tolerance for a float model's answers: a little over the error stated when it was made.

    Parameters
    ----------
    quantization_error : mapping
        Of the model; ``float_error`` is its ONNX form's largest error on the training table.
    least : float
        Tolerance if nothing or less is stated.

    Returns
    -------
    float
        On a probability.
    """
    return max(least, 1.5 * float(quantization_error.get("float_error", 0.0)))
