"""Parts of a scenario: links with their losses and queues, flows and cross traffic."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from data.netsim import bounds
from data.netsim.bounds import (
    Bytes,
    Delay,
    Length,
    Packets,
    Period,
    Rate,
    RateOrNone,
    Seconds,
    Span,
)
from data.strict import Strict


class Part(Strict):
    """Base of a scenario's parts: every number is a finite one."""

    model_config = ConfigDict(allow_inf_nan=False)


class Gilbert(Part):
    """Gilbert-Elliott loss: chances of changing state, per packet, and of loss in each."""

    to_bad: float = Field(ge=0, le=1)
    to_good: float = Field(ge=0, le=1)
    loss_good: float = Field(default=0.0, ge=0, le=1)
    loss_bad: float = Field(default=1.0, ge=0, le=1)


class Red(Part):
    """RED's thresholds (packets), largest probability below the upper one, and gain."""

    min_packets: float = Field(default=5.0, gt=0, le=1e9)
    max_packets: float = Field(default=15.0, gt=0, le=1e9)
    max_p: float = Field(default=0.02, gt=0, le=1)
    weight: float = Field(default=0.002, gt=0, le=1)
    gentle: bool = True

    @model_validator(mode="after")
    def _ordered(self) -> Red:
        if self.min_packets >= self.max_packets:
            raise ValueError("min_packets lies below max_packets")
        return self


class Generate(Part):
    """Arguments of `data.netsim.traces.generate`; without ``seed`` each run has its own trace."""

    kind: str
    mean_mbps: Rate
    duration_s: Length = 120.0
    seed: int | None = Field(default=None, ge=0)


class Link(Part):
    """One direction of a link. Without a rate it only delays; without a limit it never drops.

    ``steps`` are (time s, Mbps) pairs; ``trace`` a mahimahi or time-Mbps file; ``delay_steps``
    (time s, ms) pairs. A series begins again after ``period_s`` (a trace at its end). ``generate``
    makes one up: `Generate`.
    ``lateness_us`` are median and 99th percentile of how late the host forwards that plays the
    link (Weibull-distributed, in order), as an emulator in software does.
    """

    rate_mbps: Rate | None = None
    steps: list[tuple[Seconds, RateOrNone]] | None = Field(
        default=None, max_length=bounds.MOST_STEPS
    )
    trace: str | None = None
    generate: Generate | None = None
    period_s: Period | None = None
    delay_ms: Delay = 0.0
    delay_steps: list[tuple[Seconds, Delay]] | None = Field(
        default=None, max_length=bounds.MOST_STEPS
    )
    delay_period_s: Period | None = None
    jitter_ms: Delay = 0.0
    lateness_us: tuple[Span, Span] | None = None
    reorder: bool = False
    queue: Literal["droptail", "red", "codel", "pie", "agent"] = "droptail"
    queue_packets: Packets | None = None
    queue_bytes: Bytes | None = None
    ecn: bool = False
    mark_packets: Packets | None = None
    red: Red = Red()
    target_ms: Span | None = None
    interval_ms: Span = 100.0
    loss: float = Field(default=0.0, ge=0, le=1)
    gilbert: Gilbert | None = None
    loss_at: Literal["entry", "exit"] = "entry"

    @model_validator(mode="after")
    def _one_rate(self) -> Link:
        given = [self.rate_mbps, self.steps, self.trace, self.generate]
        if sum(x is not None for x in given) > 1:
            raise ValueError("give one of rate_mbps, steps, trace, generate")
        if self.steps is not None:
            bounds.ascending(self.steps, self.period_s, "steps")
        if self.delay_steps is not None:
            bounds.ascending(self.delay_steps, self.delay_period_s, "delay_steps")
        if self.lateness_us is not None and not 0 < self.lateness_us[0] < self.lateness_us[1]:
            raise ValueError("lateness_us is a median above 0 and a 99th percentile above it")
        if self.loss > 0 and self.gilbert is not None:
            raise ValueError("give one of loss, gilbert")
        return self


class Path_(Part):
    """Names of the links from sender to receiver and of those back."""

    forward: list[str] = Field(min_length=1, max_length=64)
    back: list[str] = Field(min_length=1, max_length=64)


class Flow(Part):
    """A connection, or ``count`` alike; several paths make it MPTCP.

    ``cc`` defaults to the controller under test; if several paths and a cc per path are
    wanted, ``ccs`` names them. ``{i}`` in link names is the number of the copy, from 0.
    Without ``byte_counting`` the window grows by ACKs, not by what they acknowledge (RFC 5681
    against RFC 3465 and Linux), which under delayed ACKs is half as fast. A receiving application
    that looks at its socket only every ``read_every_ms`` keeps the window from moving between:
    what arrived in order is acknowledged when it reads, as in Linux. ``metric`` is the name under
    which the flow's goodput stands among the metrics besides.
    """

    name: str
    paths: list[Path_] = Field(min_length=1, max_length=64)
    cc: str | None = None
    ccs: list[str] | None = None
    count: int = Field(default=1, ge=1, le=bounds.MOST_FLOWS)
    start_s: Seconds = 0.0
    start_gap_s: Seconds = 0.0
    start_spread_s: Seconds = 0.0
    stop_s: Length | None = None
    size_bytes: Bytes | None = Field(default=None, gt=0)
    rate_mbps: Rate | None = None
    scheduler: Literal["minrtt", "roundrobin", "redundant", "qos"] = "minrtt"
    segment_bytes: int = Field(default=1448, gt=0, le=65000)
    header_bytes: int = Field(default=52, ge=20, le=1000)
    window_bytes: Bytes = Field(default=6_291_456, gt=0)
    initial_cwnd: int = Field(default=10, ge=1, le=1_000_000)
    byte_counting: bool = True
    ack_every: int = Field(default=2, ge=1, le=1_000_000)
    ack_delay_ms: Span = 40.0
    read_every_ms: Delay = 0.0
    quick_acks: Packets = 62
    rto_min_ms: Span = 200.0
    pacing: bool | None = None
    ecn: bool | None = None
    measure: bool = True
    metric: Literal["node_a_mbps", "node_b_mbps"] | None = None
    target_delay_ms: Span = 50.0
    k: float = Field(default=7.0, gt=0, le=1e6)


class Source(Part):
    """Cross traffic without congestion control; ``on_s``/``off_s`` make it come in bursts."""

    path: list[str] = Field(min_length=1, max_length=64)
    rate_mbps: Rate
    packet_bytes: int = Field(default=1500, ge=20, le=65_535)
    poisson: bool = False
    on_s: float | None = Field(default=None, ge=1e-6, le=86_400)
    off_s: Seconds = 1.0
    random_on_off: bool = False
    start_s: Seconds = 0.0
    stop_s: Length | None = None
