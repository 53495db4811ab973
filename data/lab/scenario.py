"""A scenario describes one lab connection in YAML: link stages, paths, traffic and the label."""

from __future__ import annotations

import difflib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from data import yaml_text
from data.errors import UserError, unknown_name
from data.lab.coupled import COUPLED

SCENARIO_DIR = Path(__file__).resolve().parent.parent / "scenarios"

# Forward paths carry data from the client, backward ones the ACKs; bg_* lead to the
# background server over the named access link, bg_rival over whatever stages it names: it stands
# for another host's connection.
PATHS = ("wifi", "lte", "wifi_back", "lte_back", "bg_wifi", "bg_lte", "bg_wifi_back", "bg_lte_back",
         "bg_rival", "bg_rival_back", "wired", "wired_back", "bg_wired",
         "bg_wired_back")  # fmt: skip
PathName = Literal["wifi", "lte", "wired"]
MIN_QUEUE_BYTES = 9000
MOST_STAGES = 64
MOST_MBPS = 10_000.0
"""Above what the link emulator forwards."""
Rate = Annotated[float, Field(ge=0.001, le=MOST_MBPS)]
Delay = Annotated[float, Field(ge=0, le=60_000)]
"""In ms."""
Spread = Annotated[float, Field(ge=0, le=10)]

CongestionControl = Literal["lia", "mpcdg", "reno", "cubic", "bbr"]


class Strict(BaseModel):
    """Frozen model that refuses unknown keys and names the nearest correct one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    near = difflib.get_close_matches(str(key), list(cls.model_fields), n=1)
                    hint = near[0] if near else ", ".join(cls.model_fields)
                    word = "did you mean" if near else "known keys:"
                    raise ValueError(f"unknown key {key!r}: {word} {hint}")
        return values


class RateProcess(Strict):
    """A generated rate series (see `data.lab.rates`) in place of a file."""

    kind: Literal["cellular", "wifi"] = "cellular"
    mean_mbps: Rate
    seed: int = 0


class Stage(Strict):
    """One link: lose, queue at a rate, delay. At most one source of rate, one size of queue.

    ``schedule`` gives the rate as pairs of a time in s, from the emulator's start and from 0 on,
    and Mbps; the last one lasts.
    """

    rate_mbps: Rate | None = None
    trace: str | None = None
    steps: str | RateProcess | None = None
    schedule: tuple[tuple[float, float], ...] | None = Field(
        default=None, min_length=1, max_length=100_000
    )
    delay_ms: Delay = 0.0
    jitter_ms: Delay = 0.0
    loss: float = Field(default=0.0, ge=0, lt=1)
    queue_bdp: float | None = Field(default=None, gt=0, le=10_000)
    queue_rtt_ms: float = Field(default=100.0, gt=0, le=60_000)
    queue_bytes: int | None = Field(default=None, gt=0, le=10_000_000_000)
    queue_packets: int | None = Field(default=None, gt=0, le=10_000_000)

    @model_validator(mode="after")
    def _one_of_each(self) -> Stage:
        rates = (self.rate_mbps, self.trace, self.steps, self.schedule)
        if sum(x is not None for x in rates) > 1:
            raise ValueError("give one of rate_mbps, trace, steps, schedule")
        if self.schedule is not None:
            times = [time_s for time_s, _ in self.schedule]
            if times[0] or any(b <= a for a, b in pairwise(times)):
                raise ValueError("schedule: times begin at 0 and grow")
            if any(not 0 < mbps <= MOST_MBPS for _, mbps in self.schedule):
                raise ValueError(f"schedule: rates are above 0 and at most {MOST_MBPS:g} Mbps")
        if sum(x is not None for x in (self.queue_bdp, self.queue_bytes, self.queue_packets)) > 1:
            raise ValueError("give one of queue_bdp, queue_bytes, queue_packets")
        if self.queue_bdp is not None and self.mean_mbps is None:
            raise ValueError("queue_bdp needs rate_mbps or a generated rate (steps: {mean_mbps})")
        return self

    @property
    def mean_mbps(self) -> float | None:
        """Mean rate in Mbps; None if it is unlimited or known to a file alone."""
        if isinstance(self.steps, RateProcess):
            return self.steps.mean_mbps
        return self.rate_mbps

    @property
    def limit_bytes(self) -> int | None:
        """Size of the drop-tail queue in bytes, if it is one of bytes."""
        if self.queue_bdp is not None and self.mean_mbps is not None:
            bdp = self.mean_mbps * 1e6 / 8 * self.queue_rtt_ms / 1e3
            return max(MIN_QUEUE_BYTES, round(bdp * self.queue_bdp))
        return self.queue_bytes


class Background(Strict):
    """One TCP flow from the client to the background server over an access link or ``rival``.

    ``rate_mbps`` is the application's limit, None for a greedy flow. The application writes
    ``burst_bytes`` at a time. With ``on_s`` and ``off_s`` it pauses: exponential durations of
    these means. ``cc: same`` is the upload's, whatever that is: a sender like it.
    """

    over: Literal["wifi", "lte", "wired", "rival"]
    rate_mbps: Rate | None = None
    cc: Literal["reno", "cubic", "bbr", "same"] = "reno"
    burst_bytes: int = Field(default=16384, gt=0, le=1_000_000_000)
    on_s: float | None = Field(default=None, gt=0, le=600)
    off_s: float | None = Field(default=None, gt=0, le=600)


class Vary(Strict):
    """Spread between repetitions: every value v becomes v·exp(u·ln(1+spread)), u in [-1, 1]."""

    rate: Spread = 0.0
    delay: Spread = 0.0
    jitter: Spread = 0.0
    queue: Spread = 0.0
    loss: Spread = 0.0


class Bottleneck(Strict):
    """The stage meant to limit each data path."""

    wifi: str
    lte: str | None = None
    wired: str | None = None


class Scenario(Strict):
    """One labelled MPTCP upload over two or three paths, or one of plain TCP over ``wifi``.

    With ``size_bytes`` the upload is so much data, begins before all its subflows are up, and ends
    when it has arrived, after ``duration_s`` at the latest.
    """

    transport: Literal["mptcp", "tcp"] = "mptcp"
    label: Literal["SB", "NSB"] | None = None
    dataset: str = "adhoc"
    family: str = ""
    case: str = ""
    cc: CongestionControl = "lia"
    duration_s: float = Field(gt=0, le=600)
    size_bytes: int | None = Field(default=None, gt=0, le=10_000_000_000)
    first: Literal["wifi", "lte"] = "wifi"
    stages: dict[str, Stage] = Field(max_length=MOST_STAGES)
    paths: dict[str, tuple[str, ...]]
    bottleneck: Bottleneck
    background: tuple[Background, ...] = Field(default=(), max_length=MOST_STAGES)
    vary: Vary = Vary()

    @field_validator("dataset", "family", "case")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not all(c.isalnum() or c in "-_." for c in name) or name.startswith("."):
            raise ValueError(f"{name!r} may hold letters, digits, '-', '_' and '.' only")
        return name

    @model_validator(mode="after")
    def _names_fit(self) -> Scenario:
        for path, stages in self.paths.items():
            if path not in PATHS:
                raise ValueError(str(unknown_name("path", path, PATHS)))
            for stage in stages:
                if stage not in self.stages:
                    raise ValueError(f"path {path}: {unknown_name('stage', stage, self.stages)}")
        for path in self.data_paths:
            for way in (path, f"{path}_back"):
                if way not in self.paths:
                    raise ValueError(f"paths: {way} is missing")
            stage = getattr(self.bottleneck, path)
            if stage not in self.paths[path]:
                raise ValueError(f"bottleneck of {path}: {stage!r} is not on that path")
        self._label_fits()
        for flow in self.background:
            if f"bg_{flow.over}" not in self.paths:
                raise ValueError(f"background over {flow.over} needs paths: bg_{flow.over}")
        return self

    def _label_fits(self) -> None:
        if self.transport == "mptcp":
            different = len(set(self.bottlenecks))
            meant = {1: "SB", len(self.bottlenecks): "NSB"}.get(different)
            if meant and self.label is None:
                raise ValueError("label is missing: SB or NSB")
            if self.label != meant:
                raise ValueError(
                    "label SB needs one common bottleneck stage, NSB two (or three) different "
                    "ones; where two of three paths share one there is no label"
                )
        elif self.label is not None or self.first != "wifi" or self.cc in COUPLED:
            raise ValueError(
                "transport tcp: one path, wifi, so no label, no other first, no lia, no mpcdg"
            )

    @property
    def data_paths(self) -> tuple[PathName, ...]:
        """Names of the connection's paths."""
        if self.transport == "tcp":
            return ("wifi",)
        return ("wifi", "lte", "wired") if "wired" in self.paths else ("wifi", "lte")

    @property
    def bottlenecks(self) -> tuple[str, ...]:
        """The stage meant to limit each of `data_paths`."""
        return tuple(getattr(self.bottleneck, path) for path in self.data_paths)

    def base_rtt_ms(self, path: PathName) -> float:
        """Base round-trip time of a path in ms: the stages' delays there and back."""
        names = self.paths[path] + self.paths[f"{path}_back"]
        return sum(self.stages[name].delay_ms for name in names)

    def rate_mbps(self, path: PathName) -> float | None:
        """Mean rate in Mbps of the path's bottleneck stage."""
        return self.stages[getattr(self.bottleneck, path)].mean_mbps

    def varied(self, seed: int) -> Scenario:
        """Draw one repetition: the same scenario with its `vary` spread applied.

        Parameters
        ----------
        seed : int
            The same seed gives the same repetition.

        Returns
        -------
        Scenario
            With rates, delays, jitters, queues and losses moved, and generated rates reseeded.
        """
        rng = np.random.default_rng(seed)

        def moved(value: float, spread: float) -> float:
            return float(value * np.exp(rng.uniform(-1, 1) * np.log1p(spread)))

        stages = {}
        for name, stage in self.stages.items():
            change: dict[str, Any] = {
                "delay_ms": moved(stage.delay_ms, self.vary.delay),
                "jitter_ms": moved(stage.jitter_ms, self.vary.jitter),
                "loss": moved(stage.loss, self.vary.loss),
            }
            if stage.rate_mbps is not None:
                change["rate_mbps"] = moved(stage.rate_mbps, self.vary.rate)
            if stage.queue_bdp is not None:
                change["queue_bdp"] = moved(stage.queue_bdp, self.vary.queue)
            if stage.queue_bytes is not None:
                change["queue_bytes"] = round(moved(stage.queue_bytes, self.vary.queue))
            if isinstance(stage.steps, RateProcess):
                drawn = int(rng.integers(2**31))
                change["steps"] = stage.steps.model_copy(update={"seed": drawn})
            stages[name] = stage.model_copy(update=change)
        return self.model_copy(update={"stages": stages})


def parse(model: type[Any], values: Any, where: str) -> Any:
    """Validate `values` as `model`, turning the first mistake into a `UserError`.

    Parameters
    ----------
    model : type
        A `Strict` model.
    values : object
        What the YAML file held.
    where : str
        The file, for the message.

    Returns
    -------
    object
        An instance of `model`.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise UserError(f"{where}: {place + ': ' if place else ''}{message}") from None


def find(name: str | Path) -> Path:
    """Path of a scenario or campaign: a file, or the name of one in `data/scenarios`."""
    path = Path(name)
    if path.is_file():
        return path
    named = SCENARIO_DIR / f"{name}.yaml"
    if named.is_file():
        return named
    raise unknown_name("scenario", str(name), (p.stem for p in SCENARIO_DIR.glob("*.yaml")))


def read_yaml(name: str | Path) -> dict[str, Any]:
    """Read a YAML mapping by file or name; a mistake in it is a `UserError`."""
    path = find(name)
    values = yaml_text.read(path)
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected a mapping of keys, got {type(values).__name__}")
    return values


def load(name: str | Path) -> Scenario:
    """Read a scenario by file or name.

    Raises
    ------
    UserError
        Unknown name or key, wrong value.
    """
    values = read_yaml(name)
    if "groups" in values:
        raise UserError(f"{find(name)}: this is a campaign; use `cczoo lab collect`")
    scenario: Scenario = parse(Scenario, values, str(find(name)))
    return scenario
