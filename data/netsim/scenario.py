"""Scenarios: links, flows and cross traffic, from YAML."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from data import yaml_text
from data.errors import UserError, unknown_name
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
from data.netsim.paper import Paper
from data.strict import Strict

SCENARIO_DIR = Path(__file__).resolve().parent.parent / "scenarios" / "netsim"


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

    ``cc`` defaults to the controller under test; where several paths and a cc per path are
    wanted, ``ccs`` names them. ``{i}`` in link names is the number of the copy, from 0.
    Without ``byte_counting`` the window grows by ACKs, not by what they acknowledge (RFC 5681
    against RFC 3465 and Linux), which under delayed ACKs is half as fast. A receiving application
    that looks at its socket only every ``read_every_ms`` keeps the window from moving between:
    what arrived in order is acknowledged when it reads, as in Linux.
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
    scheduler: Literal["minrtt", "roundrobin", "redundant"] = "minrtt"
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


class Scenario(Part):
    """Everything about a simulation but the seed and the controller under test.

    ``variants`` (label -> dotted key -> value) are scenarios that differ from this one;
    ``paper`` holds what the publication says, to be printed beside our numbers.
    """

    title: str = ""
    source: str = ""
    paper: Paper = Paper()
    duration_s: Length = 30.0
    warmup_s: Seconds = 0.0
    sample_s: Length = 0.1
    bottleneck: str | None = None
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    links: dict[str, Link] = Field(min_length=1, max_length=bounds.MOST_LINKS)
    flows: list[Flow] = Field(default_factory=list, max_length=bounds.MOST_FLOWS)
    sources: list[Source] = Field(default_factory=list, max_length=bounds.MOST_FLOWS)

    @model_validator(mode="after")
    def _links_exist(self) -> Scenario:
        if self.flows and self.warmup_s >= self.duration_s:
            raise ValueError(f"warmup_s {self.warmup_s:g} leaves nothing of {self.duration_s:g} s")
        bounds.check(self)
        for flow in self.flows:
            if flow.ccs is not None and len(flow.ccs) != len(flow.paths):
                raise ValueError(f"flow {flow.name}: ccs: give one for each of its paths")
            for path in flow.paths:
                for i in range(flow.count):
                    self._check([n.replace("{i}", str(i)) for n in path.forward + path.back])
        for source in self.sources:
            self._check(source.path)
        if self.bottleneck is not None:
            self._check([self.bottleneck])
        bounds.check_work(self)
        return self

    def _check(self, names: list[str]) -> None:
        for name in names:
            if name not in self.links:
                raise ValueError(str(unknown_name("link", name, self.links)))


def names() -> list[str]:
    """Names of the simulator's scenarios that come with the project."""
    return sorted(path.stem for path in SCENARIO_DIR.glob("*.yaml"))


def load(name: str, settings: dict[str, Any] | None = None) -> dict[str, Scenario]:
    """Read a scenario by name, or a user's own YAML file.

    Parameters
    ----------
    name : str
        A name of `names`, or the path of a ``.yaml`` file.
    settings : mapping, optional
        Dotted key -> value, laid over the file and its variants: ``links.NAME.trace``.

    Returns
    -------
    dict
        Label -> scenario: the file's variants, or the scenario itself under "".

    Raises
    ------
    UserError
        Unknown name or key, unreadable file.
    """
    path = Path(name)
    if path.suffix not in {".yaml", ".yml"}:
        if name not in names():
            raise unknown_name("scenario", name, names())
        path = SCENARIO_DIR / f"{name}.yaml"
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: not a file: give a readable scenario file")
    tree = yaml_text.read(path)
    if not isinstance(tree, dict):
        raise UserError(f"{path}: a mapping with links and flows was expected at the top")
    for key in ("links", "variants"):
        if not isinstance(tree.get(key) or {}, dict):
            raise UserError(f"{path}: {key}: a mapping of names was expected")
    tree = expand(tree, str(path))
    variants = tree.get("variants") or {"": {}}
    result: dict[str, Scenario] = {}
    for label, changes in variants.items():
        if not isinstance(changes or {}, dict):
            raise UserError(f"{path}: variants.{label}: give dotted keys and their values")
        varied = copy.deepcopy(tree)
        for key, value in {**(changes or {}), **(settings or {})}.items():
            _set(varied, key, value, str(path))
        result[str(label)] = Scenario.parse(varied, str(path))
    return result


def expand(tree: dict[str, Any], where: str) -> dict[str, Any]:
    """Write out links given once for many: ``access{0..2}: {...}`` makes three.

    Raises
    ------
    UserError
        Where the range isn't two whole numbers; ``where`` is the file's name.
    """
    links: dict[str, Any] = {}
    for name, link in (tree.get("links") or {}).items():
        head, brace, tail = str(name).partition("{")
        if brace and ".." in tail:
            first, _, last = tail.rstrip("}").partition("..")
            if not (first.isdecimal() and last.isdecimal()):
                raise UserError(f"{where}: links.{name}: give a range such as {head}{{0..2}}")
            if int(last) - int(first) >= bounds.MOST_LINKS:
                raise UserError(f"{where}: links.{name}: at most {bounds.MOST_LINKS} links")
            links |= {f"{head}{i}": link for i in range(int(first), int(last) + 1)}
        else:
            links[str(name)] = link
    return {**tree, "links": links}


def _set(tree: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Lay one setting over a tree; setting a link's rate takes its other rates away."""
    parts = key.split(".")
    node: Any = tree
    for part in parts[:-1]:
        try:
            node = node[int(part)] if isinstance(node, list) else node[part]
        except (KeyError, IndexError, ValueError, TypeError):
            there = range(len(node)) if isinstance(node, list) else ()
            known = node if isinstance(node, dict) else map(str, there)
            raise UserError(f"{where}: --set {key}: {unknown_name('key', part, known)}") from None
    if not isinstance(node, dict):
        raise UserError(f"{where}: --set {key}: {'.'.join(parts[:-1])} has no settings")
    rates = ("rate_mbps", "steps", "trace", "generate")
    if parts[0] == "links" and parts[-1] in rates:
        for rate in rates:
            node.pop(rate, None)
    node[parts[-1]] = value
