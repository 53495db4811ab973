"""Settings of the network of contexts: the ``qos`` part of ``params.yaml``."""

from __future__ import annotations

from pydantic import Field

from data.strict import Strict
from data.video.params import SessionParams


class Params(Strict):
    """``models.qos`` of ``params.yaml``."""

    seed: int = Field(7, ge=0, lt=2**31)
    sessions: SessionParams = SessionParams()
    terms: int = Field(3, ge=2, le=3)
    """Values that a variable may have at most."""
    test_share: float = Field(0.25, gt=0.01, lt=0.9)
    equivalent_sample_size: float = Field(10.0, gt=0, le=1e6)
    """Weight of the BDeu prior, in sessions."""
    most_parents: int = Field(4, ge=1, le=6)
    """Of a variable in the structure that is learned."""
    resamples: int = Field(1000, ge=100, le=100_000)
