"""Settings of simulated streaming sessions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from data.strict import Strict


class SessionParams(Strict):
    """How sessions are simulated."""

    count: int = Field(20_000, ge=100, le=1_000_000)
    seed: int = Field(1, ge=0, lt=2**31)
    duration_s: float = Field(10.0, ge=4, le=600)
    batch: int = Field(40, ge=1, le=500)
    """Sessions that share a simulation, without touching each other."""
    cc: str = "lia"
    scheduler: Literal["minrtt", "roundrobin", "redundant", "qos"] = "minrtt"
