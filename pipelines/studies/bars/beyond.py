"""The behaviour of an agent out of the range of its training, and at a shared bottleneck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data.errors import UserError
from data.netsim.scenario import Scenario, load
from data.results import Result
from models.envs.samplers import Sampler, mixed_paths, wireless
from pipelines.studies.bars.bench import Bench, Episode, Floats, over
from pipelines.studies.bars.drawn import (
    changed,
    delays,
    episodes,
    rates,
    stretched,
    three_paths,
    upper,
)
from pipelines.studies.bars.judge import interval, over_seeds

CUBIC = "cubic"
NEIGHBOURS = ("cubic", "bbr", "reno")
UNKNOWN = ("vegas", "westwood", "illinois")
"""Controls that no training has beside its agents."""
KINDS = (2, 4)
MOST = {"tcco": (150.0, 500.0, 0.005), "nuwa": (50.0, 150.0, 0.0005)}
"""Upper ends of the ranges that `mixed_paths` and `wireless` draw from: a path's base delay one way
(ms), base rate (Mbps) and loss."""


class Value(Result):
    """A mean over seeds with its 95 % interval (Student's t); None if a seed has no value."""

    mean: float | None
    low: float | None
    high: float | None


class Outside(Result):
    """A condition, by the agent's figures over CUBIC's on the same runs.

    Attributes
    ----------
    condition : str
    goodput, rtt, power : Value or None
        Ratios, paired by seed; None if the agent refuses to play there.
    refused : str
        Why it does; "" if it plays.
    """

    condition: str
    goodput: Value | None
    rtt: Value | None
    power: Value | None
    refused: str


class Fair(Result):
    """How flows share a bottleneck.

    Attributes
    ----------
    who : str
    jain : Value or None
        Jain's index of all flows' goodputs; None if the agent refuses to play there.
    share : Value or None
        The agents' goodput over what CUBIC gets in their place.
    left : Value or None
        The neighbour's goodput over what it gets with CUBIC there; None without neighbours.
    refused : str
        As of `Outside`.
    """

    who: str
    jain: Value | None
    share: Value | None
    left: Value | None
    refused: str = ""


def conditions(bench: Bench) -> dict[str, list[Episode]]:
    """Range of training first, then what lies outside of it: label -> episodes."""
    kind = bench.player.policy.environment
    if kind == "macc":
        found = _dumbbells(bench)
    else:
        sampler: Sampler = mixed_paths if kind == "tcco" else wireless
        delay, rate, loss = MOST[kind]
        slow, fast = upper(sampler, delays, delay), upper(sampler, rates, rate)
        drawn = {
            "as in training": sampler,
            f"RTT of {2 * delay:g} to {4 * delay:g} ms": changed(slow, rtt=2.0),
            f"rate of {rate:g} to {2 * rate:g} Mbps": changed(fast, rate=2.0),
            f"twice the most loss ({100 * 2 * loss:g} %)": changed(sampler, loss=2 * loss),
        }
        if kind == "tcco":
            drawn["three subflows"] = three_paths
        found = {label: episodes(one, bench.seeds) for label, one in drawn.items()}
    for name in UNKNOWN:
        found[f"beside {name}"] = bench.of(shared(kind, 1, name))
    return found


def _dumbbells(bench: Bench) -> dict[str, list[Episode]]:
    """MA-CC's: it is trained in one network."""
    spec = load("macc-fig4", {"warmup_s": 10})["droptail"]
    six = [flow.model_copy(update={"count": 6, "paths": [_first(path) for path in flow.paths]})
           for flow in spec.flows]  # fmt: skip
    lossy = spec.links["core"].model_copy(update={"loss": 0.0006})
    found = {
        "as in training": spec,
        "twice the RTT (560 ms)": stretched(spec, rtt=2.0),
        "twice the rate (60 Mbps)": stretched(spec, rate=2.0),
        "twice the loss (0.06 %)": spec.model_copy(update={"links": {**spec.links, "core": lossy}}),
        "six senders": spec.model_copy(update={"flows": six}),
    }
    return {label: bench.of(one) for label, one in found.items()}


def _first(path: Any) -> Any:
    """A path of copies, all of them through the first one's links."""
    names = {end: [link.replace("{i}", "0") for link in getattr(path, end)]
             for end in ("forward", "back")}  # fmt: skip
    return path.model_copy(update=names)


def outside(bench: Bench, label: str, there: Sequence[Episode]) -> Outside:
    """Measure one condition."""
    if refused := _refused(bench, there):
        return Outside(condition=label, goodput=None, rtt=None, power=None, refused=refused)
    ratios = {}
    for metric in ("goodput_mbps", "rtt_ms"):
        if label.startswith("beside "):
            metric = {"goodput_mbps": "flows.agent0"}.get(metric, metric)
        ratios[metric] = over(bench.values(there, metric), bench.values(there, metric, CUBIC))
    goodput, rtt = ratios.values()
    found = [over_seeds(one, bench.seeds) for one in (goodput, rtt, over(goodput, rtt))]
    goodput_value, rtt_value, power = map(_value, found)
    return Outside(condition=label, goodput=goodput_value, rtt=rtt_value, power=power, refused="")


def _refused(bench: Bench, there: Sequence[Episode]) -> str:
    """Why the agent doesn't play there; "" if it does."""
    try:
        for spec in {id(spec): spec for spec, _ in there}.values():
            bench.player.check(spec)
    except UserError as error:
        return str(error)
    return ""


def shared(kind: str, agents: int, neighbour: str = "") -> Scenario:
    """A bottleneck that flows of one path share, which begin two seconds apart.

    Parameters
    ----------
    kind : str
        The agent's environment: MA-CC has the paper's bottleneck of 30 Mbps and 280 ms, the
        others one of 50 Mbps and 40 ms with a queue of 96 ms.
    agents : int
        How many flows the agent runs, or CUBIC in its place.
    neighbour : str, optional
        Control of a flow besides.
    """
    core: Mapping[str, Any] = {"rate_mbps": 50.0, "delay_ms": 20.0, "queue_packets": 400}
    back = 20.0
    if kind == "macc":
        core = {"rate_mbps": 30.0, "delay_ms": 140.0, "queue_packets": 385,
                "loss": 0.0003, "loss_at": "exit"}  # fmt: skip
        back = 140.0
    flow = {"paths": [{"forward": ["core"], "back": ["back"]}], "start_spread_s": 0.5,
            "window_bytes": 8 << 20}  # fmt: skip
    # Numbered, even if there is but one.
    flows = [{"name": f"agent{i}", "start_s": 2.0 * i, **flow} for i in range(agents)]
    if neighbour:
        flows.append({"name": "neighbour", "cc": neighbour, "start_s": 2.0 * agents, **flow})
    tree = {"duration_s": 60.0, "warmup_s": 20.0, "bottleneck": "core",
            "links": {"core": core, "back": {"delay_ms": back}}, "flows": flows}  # fmt: skip
    return Scenario.parse(tree, "fairness")


def fair(bench: Bench) -> list[Fair]:
    """Two and four agents of a kind, then one beside each of `NEIGHBOURS`."""
    kind = bench.player.policy.environment
    found = []
    for count in KINDS:
        there, who = bench.of(shared(kind, count)), f"{count} of a kind"
        if refused := _refused(bench, there):
            found.append(Fair(who=who, jain=None, share=None, left=None, refused=refused))
            continue
        jain = _value(bench.values(there, "jain"))
        found.append(Fair(who=who, jain=jain, share=None, left=None))
    for neighbour in NEIGHBOURS:
        there, who = bench.of(shared(kind, 1, neighbour)), f"beside {neighbour}"
        if refused := _refused(bench, there):
            found.append(Fair(who=who, jain=None, share=None, left=None, refused=refused))
            continue
        share, left = (
            over(bench.values(there, flow), bench.values(there, flow, CUBIC))
            for flow in ("flows.agent0", "flows.neighbour")
        )
        jain = _value(bench.values(there, "jain"))
        found.append(Fair(who=who, jain=jain, share=_value(share), left=_value(left)))
    return found


def _value(values: Floats) -> Value:
    mean, low, high = interval(values, 5) or (None, None, None)
    return Value(mean=mean, low=low, high=high)
