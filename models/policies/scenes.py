"""How a policy is put into a scenario: which of its flows and queues it runs, and in which batch.

A line of `ENVIRONMENTS` is all that a kind of environment needs to be played in any scenario.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from data.errors import UserError
from data.netsim.elements import Flow

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from data.strict import Strict
    from models.envs.batching import Batching
    from models.rl.layout import Layout


class Policy(Protocol):
    """What of a `models.policies.policy.Policy` decides where it fits."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def layout(self) -> Layout:
        """Parts of its training's environments."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Settings of these environments."""
        ...

    @property
    def kinds(self) -> tuple[int, ...]:
        """Kinds of parts that it decides for."""
        ...


@dataclass(frozen=True)
class Part:
    """A scenario as a policy plays it.

    Attributes
    ----------
    scenario : Scenario
        With the queues that the policy runs.
    controller : str
        What the flows without a ``cc`` run in the simulator.
    own : tuple of int
        Connections, each with an environment of its own.
    senders, routers
        What a team's environment consists of: how many flows, and names of links.
    """

    scenario: Scenario
    controller: str
    own: tuple[int, ...]
    senders: int = 0
    routers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """A line of the registry.

    Attributes
    ----------
    makers : tuple of str
        What `models.rl.agents.AGENTS` names to make it for a training.
    settings_at : str
        ``module:class`` of its settings, with ``params``.
    part : function
        Says how a policy is put into a scenario; raises a `UserError` where it can't be.
    batch : function
        Makes a batch: takes the policy's params and the parts of all simulations.
    """

    makers: tuple[str, ...]
    settings_at: str
    part: Callable[[Policy, Scenario], Part]
    batch: Callable[[Mapping[str, Any], Sequence[Part]], Batching]

    def settings(self) -> type[Strict]:
        """Type of its settings."""
        module, _, name = self.settings_at.partition(":")
        found: type[Strict] = getattr(importlib.import_module(module), name)
        return found


def under_test(scenario: Scenario) -> list[tuple[int, Flow]]:
    """Connections without a ``cc`` of their own, by number."""
    flows = [flow for flow in scenario.flows for _ in range(flow.count)]
    return [(i, flow) for i, flow in enumerate(flows) if flow.cc is None and flow.ccs is None]


def _own(policy: Policy, scenario: Scenario) -> list[tuple[int, Flow]]:
    found = under_test(scenario)
    if not found:
        raise UserError(f"{policy.name}: no flow without a cc, which it could run")
    return found


def _tcco(policy: Policy, scenario: Scenario) -> Part:
    found = _own(policy, scenario)
    for _, flow in found:
        if len(flow.paths) > policy.layout.parts:
            raise UserError(
                f"{policy.name}: flow {flow.name}: {len(flow.paths)} subflows, it was trained with "
                f"{policy.layout.parts} at most: train with --set env.sampler=served_paths"
            )
    return Part(scenario, "agent", tuple(i for i, _ in found))


def _nuwa(policy: Policy, scenario: Scenario) -> Part:
    found = _own(policy, scenario)
    for _, flow in found:
        if len(flow.paths) > 1:
            raise UserError(
                f"{policy.name}: flow {flow.name}: {len(flow.paths)} paths, it is a receiver of "
                "one: choose a scenario of flows with a single path"
            )
    return Part(scenario, "nuwa", tuple(i for i, _ in found))


def _macc(policy: Policy, scenario: Scenario) -> Part:
    sends, drops = 0 in policy.kinds, 1 in policy.kinds
    routers = _queues(policy, scenario) if drops else ()
    flows = under_test(scenario) if sends else []
    if sends:
        for _, flow in _own(policy, scenario):
            if len(flow.paths) > 1:
                raise UserError(
                    f"{policy.name}: flow {flow.name}: {len(flow.paths)} paths, its senders have "
                    "one: choose a scenario of flows with a single path"
                )
    elif not routers:
        raise UserError(
            f"{policy.name}: no queue for a router to run: give a link `queue: agent`, or name "
            "the scenario's bottleneck, with a plain queue"
        )
    links = {
        name: link.model_copy(update={"queue": "agent"}) if name in routers else link
        for name, link in scenario.links.items()
    }
    # The paper's routers alone stand behind NewReno (ma-cc.txt Fig. 4).
    changed = scenario.model_copy(update={"links": links})
    return Part(changed, "agent" if sends else "reno", (0,), len(flows), routers)


def _queues(policy: Policy, scenario: Scenario) -> tuple[str, ...]:
    """Links whose queue the routers run.

    Those that the scenario gives to agents; or else plain queues of the names that were trained
    with; or else that of the bottleneck.
    """
    links = scenario.links
    given = [name for name, link in links.items() if link.queue == "agent"]
    if given:
        return tuple(given)
    plain = [name for name, link in links.items() if link.queue == "droptail"]
    trained = [name for name in policy.params["routers"] if name in plain]
    if trained or scenario.bottleneck not in plain:
        return tuple(trained)
    return (scenario.bottleneck,)


def _tcco_batch(params: Mapping[str, Any], parts: Sequence[Part]) -> Batching:
    from models.envs.tcco import TccoBatch

    return TccoBatch(sum(len(p.own) for p in parts), params=dict(params), threads=1, stagger=False)


def _nuwa_batch(params: Mapping[str, Any], parts: Sequence[Part]) -> Batching:
    from models.envs.nuwa import NuwaBatch

    return NuwaBatch(sum(len(p.own) for p in parts), params=dict(params), threads=1, stagger=False)


def _macc_batch(params: Mapping[str, Any], parts: Sequence[Part]) -> Batching:
    from models.envs.macc import MaccBatch

    there = {
        "senders": max(1, *(part.senders for part in parts)),
        "routers": list(dict.fromkeys(name for part in parts for name in part.routers)),
        "watch_other_queues": False,
    }
    return MaccBatch(len(parts), params={**params, **there}, threads=1, stagger=False)


ENVIRONMENTS: dict[str, Environment] = {
    "tcco": Environment(
        ("models.envs.tcco:batch",), "models.envs.tcco:TccoSettings", _tcco, _tcco_batch
    ),
    "nuwa": Environment(
        ("models.envs.nuwa_twin:batch",), "models.envs.nuwa_twin:NuwaSettings", _nuwa, _nuwa_batch
    ),
    "macc": Environment(
        ("models.envs.macc:batch",), "models.envs.macc:MaccSettings", _macc, _macc_batch
    ),
}
"""Name -> how policies of it are played."""
