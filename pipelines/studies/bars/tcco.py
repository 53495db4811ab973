"""TCCO's bars."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from data.netsim.cc import COUPLED
from data.netsim.scenario import load
from models.envs.samplers import mixed_paths
from pipelines.league.capacity import most_mbps
from pipelines.studies.bars.bench import AGENT, Bench, Floats, Script, over
from pipelines.studies.bars.drawn import episodes
from pipelines.studies.bars.judge import Bar, over_seeds
from pipelines.studies.bars.scripts import Tracking

if TYPE_CHECKING:
    from models.policies.policy import Policy

GOODPUT, RTT = "goodput_mbps", "rtt_ms"
_LOSSES = (0.0005, 0.005, 0.01)


def bars(policy: Policy) -> list[Bar]:
    """The bars, all of them for any policy."""
    found = [
        Bar("tcco-fig9a", "Fig. 9a: goodput over the best classical control's", "", 0.997, _fig9a),
        Bar("tcco-fig9a", "Fig. 9a: RTT", "ms", 6.0, _fig9a_rtt, at_least=False),
    ]
    for loss in _LOSSES:
        shown = f"{100 * loss:g} % loss: goodput over"
        found += [
            Bar("tcco-fig9-loss", f"{shown} BBR's", "", 1.01, partial(_over_bbr, loss)),
            Bar("tcco-fig9-loss", f"{shown} its own without loss", "", 0.99, partial(_held, loss)),
        ]
    fastest = "completion time over the fastest classical control's"
    for label in load("tcco-fig10"):
        found.append(Bar("tcco-fig10", f"Fig. 10, {label}: {fastest}", "", 1.02,
                         partial(_slower, "tcco-fig10", label), at_least=False))  # fmt: skip
    for label in load("tcco-fig11"):
        found.append(Bar("tcco-fig11", f"Fig. 11a, {label}: goodput over the best classical "
                         "control's", "", 0.98, partial(_fig11, label)))  # fmt: skip
    for label in load("tcco-fig11-fct"):
        found.append(Bar("tcco-fig11-fct", f"Fig. 11b-d, {label}: {fastest}", "", 1.02,
                         partial(_slower, "tcco-fig11-fct", label), at_least=False))  # fmt: skip
    mixed = "mixed paths (3 to 300 ms, 20 to 500 Mbps)"
    return [
        *found,
        Bar("tcco-table2", "Table II: Jain's index (the paper's)", "", 0.82, _table2),
        Bar("tcco-table2", "Table II: Jain's index (goal)", "", 0.90, _table2),
        Bar("mixed", f"{mixed}: utilisation", "", 0.95, _utilisation),
        Bar("mixed", f"{mixed}: power less the tracking script's (1.25 of what a path holds)", "",
            0.0, partial(_power_over, Tracking(1.25)), sure=True),
        *(Bar("mixed", f"{mixed}: power less {cc}'s", "", 0.0, partial(_power_over, cc), sure=True)
          for cc in sorted(COUPLED)),
    ]  # fmt: skip


def _classical(name: str) -> list[str]:
    return next(iter(load(name).values())).paper.controllers


def _fig9a(bench: Bench) -> Floats:
    there = bench.named("tcco-fig9a")
    best = bench.best(there, GOODPUT, _classical("tcco-fig9a"))
    return over(bench.values(there, GOODPUT), best)


def _fig9a_rtt(bench: Bench) -> Floats:
    return bench.values(bench.named("tcco-fig9a"), RTT)


def _with_loss(bench: Bench, loss: float, who: str = AGENT) -> Floats:
    links = {"links__one__loss": loss, "links__two__loss": loss}
    return bench.values(bench.named("tcco-fig9-loss", "loss 0.05 %", **links), GOODPUT, who)


def _over_bbr(loss: float, bench: Bench) -> Floats:
    return over(_with_loss(bench, loss), _with_loss(bench, loss, "bbr"))


def _held(loss: float, bench: Bench) -> Floats:
    return over(_with_loss(bench, loss), _with_loss(bench, 0.0))


def _slower(name: str, label: str, bench: Bench) -> Floats:
    there = bench.named(name, label)
    # A transfer that didn't end within the scenario took at least as long as that.
    ends = np.array([spec.duration_s * 1e3 for spec, _ in there])
    best = bench.best(there, "fct_ms", _classical(name), most=False, otherwise=ends)
    return over(bench.values(there, "fct_ms", otherwise=ends), best)


def _fig11(label: str, bench: Bench) -> Floats:
    there = bench.named("tcco-fig11", label)
    best = bench.best(there, GOODPUT, _classical("tcco-fig11"))
    return over(bench.values(there, GOODPUT), best)


def _table2(bench: Bench) -> Floats:
    return bench.values(bench.named("tcco-table2"), "jain")


def _shares(bench: Bench, who: str | Script = AGENT) -> Floats:
    """Goodput as a share of what the links carry, in each drawn scenario."""
    there = episodes(mixed_paths, bench.seeds)
    most = np.array([most_mbps(spec, seed) for spec, seed in there])
    shares: Floats = bench.values(there, GOODPUT, who) / most
    return shares


def _utilisation(bench: Bench) -> Floats:
    return over_seeds(_shares(bench), bench.seeds)


def _power(bench: Bench, who: str | Script = AGENT) -> Floats:
    there = episodes(mixed_paths, bench.seeds)
    ratio = bench.values(there, "rtt_ratio", who)
    return over_seeds(over(_shares(bench, who), ratio), bench.seeds)


def _power_over(who: str | Script, bench: Bench) -> Floats:
    return _power(bench) - _power(bench, who)
