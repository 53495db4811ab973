"""Play trained policies in any scenario of the simulator, as congestion controls among others.

What a policy observes is computed by the same compiled loops, and so by the same definitions of
`features`, as in its training; its actions are those of its training. Metrics are those of
`data.netsim.metrics`, sampled at the same times as of any other control.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from data.errors import UserError
from data.netsim.network import Network
from data.netsim.scenario import Scenario
from models import policies, store
from models.one_thread import one_thread
from models.policies.policy import Policy, of_training
from models.policies.scenes import ENVIRONMENTS, Part

SIDE_BY_SIDE = 16
"""Simulations that one call of a network decides for."""
_CALLS = 20

Row = dict[str, Any]


class Player:
    """A policy as a congestion control.

    Parameters
    ----------
    policy : Policy
    delay_ms : float, optional
        How long after an observation its action takes effect.

    Raises
    ------
    UserError
        When it would take effect after the next decision.
    """

    def __init__(self, policy: Policy, delay_ms: float = 0.0) -> None:
        self.policy, self.name, self.delay_ms = policy, policy.name, delay_ms
        interval_ms = policy.params["observation"]["interval_us"] / 1e3
        if not 0 <= delay_ms < interval_ms:
            raise UserError(
                f"{self.name}: a delay of {delay_ms:g} ms: give one from 0 to below "
                f"{interval_ms:g} ms, the time between its decisions"
            )
        self.facts: Mapping[str, Any] = {"delay_ms": delay_ms}

    def check(self, scenario: Scenario) -> Part:
        """Say how it is put into a scenario.

        Raises
        ------
        UserError
            When it doesn't fit there.
        """
        return ENVIRONMENTS[self.policy.environment].part(self.policy, scenario)

    def play(self, episodes: Sequence[tuple[Scenario, int]], watch: Any = None) -> list[Row]:
        """Play scenarios, each with a seed, side by side.

        Parameters
        ----------
        episodes : sequence of (Scenario, int)
        watch : callable, optional
            Called with the batch and the actions at each decision.

        Returns
        -------
        list of dict
            As `data.netsim.metrics.simulate`, with ``decision_us``: what a decision for one
            simulation costs on this machine, measured for each run anew.
        """
        rows: list[Row] = []
        for at in range(0, len(episodes), SIDE_BY_SIDE):
            rows += self._played(episodes[at : at + SIDE_BY_SIDE], watch)
        return [{**row, "decision_us": self.measured_us()} for row in rows]

    def _played(self, episodes: Sequence[tuple[Scenario, int]], watch: Any) -> list[Row]:
        from models.envs.stage import Stage
        from models.rl.layout import Layout

        parts = [self.check(scenario) for scenario, _ in episodes]
        batch = ENVIRONMENTS[self.policy.environment].batch(self.policy.params, parts)
        networks: list[Network] = []
        own: list[int] = []
        for part, (_, seed) in zip(parts, episodes, strict=True):
            network = Network(part.scenario, part.controller, seed, watch=True)
            networks += [network] * len(part.own)
            own += part.own
        stage = Stage(batch, networks, own, int(self.delay_ms * 1e3))
        with one_thread():
            act = self.policy.actor(Layout.of(batch))

            def decide(batch: Any) -> Any:
                actions = act(batch)
                if watch is not None:
                    watch(batch, actions)
                return actions

            return stage.play(decide)

    @cached_property
    def decision_us(self) -> float:
        """Time of a decision for one simulation as it was first measured here (us)."""
        return self.measured_us()

    def measured_us(self) -> float:
        """Time of a decision for one simulation, once its observation is there (us, median)."""
        layout = self.policy.layout
        with one_thread():
            act = self.policy.actor(layout)
            batch = SimpleNamespace(
                num_envs=1,
                observations=np.full((1, layout.parts, layout.features), 0.5, np.float32),
                values=np.ones((1, layout.parts, layout.features)),
                mask=np.ones((1, layout.parts), bool),
                started=np.zeros(1, bool),
            )
            spent = []
            for _ in range(_CALLS):
                begun = time.perf_counter_ns()
                act(batch)
                spent.append(time.perf_counter_ns() - begun)
        # The first calls fill caches and allocate.
        return float(np.median(spent[_CALLS // 4 :])) / 1e3


def player(name: str, delay_ms: float = 0.0, zoo: Path | None = None) -> Player:
    """The policy that a name stands for.

    Parameters
    ----------
    name : str
        An entry of the zoo, ``macc`` for its senders and routers together, the folder of an entry,
        of a training (``reports/rl/tcco/seed-7``) or of a bundle that holds a policy as ONNX.
    delay_ms : float, optional
        How long after an observation its action takes effect.
    zoo : Path, optional
        Another zoo than the repository's.

    Raises
    ------
    UserError
        When there is none, with the nearest name, or it can't be read.
    """
    from models.policies.entry import of_entry

    zoo = zoo or store.ZOO
    policies.check_name(name, zoo)
    if name in policies.PAIRS and not policies.is_path(name):
        one, other = (of_entry(store.load(zoo / entry)) for entry in policies.PAIRS[name])
        return Player(one.joined(other, name), delay_ms)
    folder = Path(name) if "/" in name else zoo / name
    folder = folder if folder.is_dir() else Path(name)
    if (folder / policies.ENTRY).is_file():
        return Player(of_entry(store.load(folder)), delay_ms)
    if (folder / "manifest.json").is_file():
        return Player(_of_bundle(folder), delay_ms)
    if (folder / "meta.json").is_file():
        raise UserError(f"{name}: a model, but no policy that sets windows")
    return Player(of_training(folder), delay_ms)


def _of_bundle(folder: Path) -> Policy:
    """The policy in a bundle of one; its certificate says whether it was proved."""
    from models.policies.in_onnx import of_file

    files = sorted(path for path in folder.glob("*.onnx") if not path.stem.endswith("_trained"))
    if not files:
        raise UserError(f"{folder}: a bundle without a policy's ONNX file: export with -t onnx")
    return replace(of_file(files[0]), name=str(folder))


def played(
    name: str, scenario: Scenario, seed: int, delay_ms: float = 0.0, zoo: Path | None = None
) -> Row:
    """Metrics of one run of a scenario under a policy; see `player` and `Player.play`."""
    return player(name, delay_ms, zoo).play([(scenario, seed)])[0]
