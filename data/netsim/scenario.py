"""Scenarios: links, flows and cross traffic, from YAML."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from data import yaml_text
from data.errors import UserError, unknown_name
from data.netsim.paper import Paper
from data.strict import Strict

SCENARIO_DIR = Path(__file__).resolve().parent.parent / "scenarios" / "netsim"


class Gilbert(Strict):
    """Gilbert-Elliott loss: chances of changing state, per packet, and of loss in each."""

    to_bad: float = Field(ge=0, le=1)
    to_good: float = Field(ge=0, le=1)
    loss_good: float = Field(default=0.0, ge=0, le=1)
    loss_bad: float = Field(default=1.0, ge=0, le=1)


class Red(Strict):
    """RED's thresholds (packets), largest probability below the upper one, and gain."""

    min_packets: float = Field(default=5.0, gt=0)
    max_packets: float = Field(default=15.0, gt=0)
    max_p: float = Field(default=0.02, gt=0, le=1)
    weight: float = Field(default=0.002, gt=0, le=1)
    gentle: bool = True


class Generate(Strict):
    """Arguments of `data.netsim.traces.generate`; without ``seed`` each run has its own trace."""

    kind: str
    mean_mbps: float = Field(gt=0)
    duration_s: float = Field(default=120.0, gt=0)
    seed: int | None = Field(default=None, ge=0)


class Link(Strict):
    """One direction of a link. Without a rate it only delays; without a limit it never drops.

    ``steps`` are (time s, Mbps) pairs; ``trace`` a mahimahi or time-Mbps file; ``delay_steps``
    (time s, ms) pairs. A series begins again after ``period_s`` (a trace at its end). ``generate``
    makes one up: `Generate`.
    ``lateness_us`` are median and 99th percentile of how late the host forwards that plays the
    link (Weibull-distributed, in order), as an emulator in software does.
    """

    rate_mbps: float | None = Field(default=None, gt=0)
    steps: list[tuple[float, float]] | None = None
    trace: str | None = None
    generate: Generate | None = None
    period_s: float | None = Field(default=None, gt=0)
    delay_ms: float = Field(default=0.0, ge=0)
    delay_steps: list[tuple[float, float]] | None = None
    delay_period_s: float | None = Field(default=None, gt=0)
    jitter_ms: float = Field(default=0.0, ge=0)
    lateness_us: tuple[float, float] | None = None
    reorder: bool = False
    queue: Literal["droptail", "red", "codel", "pie", "agent"] = "droptail"
    queue_packets: int | None = Field(default=None, ge=0)
    queue_bytes: int | None = Field(default=None, ge=0)
    ecn: bool = False
    mark_packets: int | None = Field(default=None, ge=0)
    red: Red = Red()
    target_ms: float | None = Field(default=None, gt=0)
    interval_ms: float = Field(default=100.0, gt=0)
    loss: float = Field(default=0.0, ge=0, le=1)
    gilbert: Gilbert | None = None
    loss_at: Literal["entry", "exit"] = "entry"

    @model_validator(mode="after")
    def _one_rate(self) -> Link:
        given = [self.rate_mbps, self.steps, self.trace, self.generate]
        if sum(x is not None for x in given) > 1:
            raise ValueError("give one of rate_mbps, steps, trace, generate")
        if self.lateness_us is not None and not 0 < self.lateness_us[0] < self.lateness_us[1]:
            raise ValueError("lateness_us is a median above 0 and a 99th percentile above it")
        if self.loss > 0 and self.gilbert is not None:
            raise ValueError("give one of loss, gilbert")
        return self


class Path_(Strict):
    """Names of the links from sender to receiver and of those back."""

    forward: list[str] = Field(min_length=1)
    back: list[str] = Field(min_length=1)


class Flow(Strict):
    """A connection, or ``count`` alike; several paths make it MPTCP.

    ``cc`` defaults to the controller under test; where several paths and a cc per path are
    wanted, ``ccs`` names them. ``{i}`` in link names is the number of the copy, from 0.
    Without ``byte_counting`` the window grows by ACKs, not by what they acknowledge (RFC 5681
    against RFC 3465 and Linux), which under delayed ACKs is half as fast. A receiving application
    that looks at its socket only every ``read_every_ms`` keeps the window from moving between:
    what arrived in order is acknowledged when it reads, as in Linux.
    """

    name: str
    paths: list[Path_] = Field(min_length=1)
    cc: str | None = None
    ccs: list[str] | None = None
    count: int = Field(default=1, ge=1)
    start_s: float = Field(default=0.0, ge=0)
    start_gap_s: float = Field(default=0.0, ge=0)
    start_spread_s: float = Field(default=0.0, ge=0)
    stop_s: float | None = Field(default=None, gt=0)
    size_bytes: int | None = Field(default=None, gt=0)
    rate_mbps: float | None = Field(default=None, gt=0)
    scheduler: Literal["minrtt", "roundrobin", "redundant"] = "minrtt"
    segment_bytes: int = Field(default=1448, gt=0, le=65000)
    header_bytes: int = Field(default=52, ge=20)
    window_bytes: int = Field(default=6_291_456, gt=0)
    initial_cwnd: int = Field(default=10, ge=1)
    byte_counting: bool = True
    ack_every: int = Field(default=2, ge=1)
    ack_delay_ms: float = Field(default=40.0, gt=0)
    read_every_ms: float = Field(default=0.0, ge=0)
    quick_acks: int = Field(default=62, ge=0)
    rto_min_ms: float = Field(default=200.0, gt=0)
    pacing: bool | None = None
    ecn: bool | None = None
    measure: bool = True
    target_delay_ms: float = Field(default=50.0, gt=0)
    k: float = Field(default=7.0, gt=0)


class Source(Strict):
    """Cross traffic without congestion control; ``on_s``/``off_s`` make it come in bursts."""

    path: list[str] = Field(min_length=1)
    rate_mbps: float = Field(gt=0)
    packet_bytes: int = Field(default=1500, gt=0)
    poisson: bool = False
    on_s: float | None = Field(default=None, gt=0)
    off_s: float = Field(default=1.0, ge=0)
    random_on_off: bool = False
    start_s: float = Field(default=0.0, ge=0)
    stop_s: float | None = Field(default=None, gt=0)


class Scenario(Strict):
    """Everything about a simulation but the seed and the controller under test.

    ``variants`` (label -> dotted key -> value) are scenarios that differ from this one;
    ``paper`` holds what the publication says, to be printed beside our numbers.
    """

    title: str = ""
    source: str = ""
    paper: Paper = Paper()
    duration_s: float = Field(default=30.0, gt=0)
    warmup_s: float = Field(default=0.0, ge=0)
    sample_s: float = Field(default=0.1, gt=0)
    bottleneck: str | None = None
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    links: dict[str, Link] = Field(min_length=1)
    flows: list[Flow] = Field(default_factory=list)
    sources: list[Source] = Field(default_factory=list)

    @model_validator(mode="after")
    def _links_exist(self) -> Scenario:
        if self.flows and self.warmup_s >= self.duration_s:
            raise ValueError(f"warmup_s {self.warmup_s:g} leaves nothing of {self.duration_s:g} s")
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
            known = node if isinstance(node, dict) else map(str, range(len(node or [])))
            raise UserError(f"{where}: --set {key}: {unknown_name('key', part, known)}") from None
    if not isinstance(node, dict):
        raise UserError(f"{where}: --set {key}: {'.'.join(parts[:-1])} has no settings")
    rates = ("rate_mbps", "steps", "trace", "generate")
    if parts[0] == "links" and parts[-1] in rates:
        for rate in rates:
            node.pop(rate, None)
    node[parts[-1]] = value
