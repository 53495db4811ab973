"""Nuwa's Fig. 12: rewards of its receiver by four algorithms in four kinds of networks.

The other sections are simulations of a scenario; here agents are paid as in their training, on
episodes that none of them has seen. There is nothing to show without agents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.netsim.paper import Claim, Learned, Paper
from pipelines.output import progress
from pipelines.studies.papers.runs import Kept, Run, sources

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from models.closedloop import Player
    from pipelines.studies.papers.runs import Results

FILE = Path(__file__)
NAME, METRIC = "nuwa-fig12", "return"
AGENTS = ("nuwa-rl", "nuwa-ppo", "nuwa-dqn", "nuwa-a2c")
FIXED = "nuwa"
"""The receiver whose k stays 7: what the agents are compared with besides each other."""
STEPS = 400
"""Decisions of an episode: 40 s, as in Fig. 14."""
_HALF = ["nuwa-dqn", "nuwa-a2c"]
CLAIMS = [
    Claim(says="PPO and PPO-LSTM are above DQN and A2C (PPO-LSTM, DQN)", metric=METRIC,
          higher=["nuwa-rl"], than=["nuwa-dqn"]),
    Claim(says="(PPO-LSTM, A2C)", metric=METRIC, higher=["nuwa-rl"], than=["nuwa-a2c"]),
    Claim(says="(PPO)", metric=METRIC, higher=["nuwa-ppo"], than=_HALF),
    Claim(says="PPO-LSTM is above what a fixed k of 7 gets", metric=METRIC, higher=["nuwa-rl"],
          than=[FIXED]),
]  # fmt: skip


def add(
    sections: dict[str, dict[str, Scenario]],
    results: dict[str, Results],
    agents: Mapping[str, Player],
    seeds: int,
    work: Path,
) -> None:
    """Put the section among the others, if there is an agent that it compares.

    Parameters
    ----------
    sections, results : dict
        Scenario -> its variants, its runs; both are added to.
    agents : mapping
    seeds : int
        Episodes of each.
    work : Path
        Folder where finished runs are kept.
    """
    from models.envs.samplers import NETWORKS, network

    playing = {name: agents[name] for name in AGENTS if name in agents}
    if not playing:
        return
    labels = {f"nuwa_{name}": name for name in NETWORKS}
    paper = Paper(controllers=[FIXED], metrics=[METRIC], claims=CLAIMS,
                  learned={name: Learned() for name in AGENTS})  # fmt: skip
    about = {"title": "Rewards of four algorithms in four kinds of networks", "paper": paper,
             "source": "nuwa.txt section V.A, Fig. 12, which prints no numbers; rates, delays, "
             "queues and T_d are drawn, by ranges of ours (`models.envs.samplers.network`); "
             "utility by eqs. 12-13, units ours"}  # fmt: skip
    sections[NAME] = {
        label: network(name)(np.random.default_rng(0)).model_copy(update=about)
        for label, name in labels.items()
    }
    runs: Results = {}
    jobs = [(label, cc) for label in labels for cc in (FIXED, *playing)]
    with Kept(work) as kept:
        for label, cc in progress(jobs, "rewards", len(jobs)):
            found = _returns(labels[label], playing.get(cc), seeds, kept)
            runs[label, cc] = [{METRIC: value} for value in found.values()]
    results[NAME] = runs


def _returns(network_name: str, player: Player | None, seeds: int, kept: Kept) -> Run:
    """Mean reward of a step in each episode, by the episode's number."""
    from models.envs.nuwa import NuwaBatch
    from models.envs.samplers import network
    from models.envs.scripted import nuwa_hold
    from models.policies.identity import code_digest, identity
    from pipelines.studies.episodes import digest, greedy, returns

    who = identity(player.policy) if player else code_digest()
    code = [who, sources(frozenset({"nuwa"})), digest([FILE])]
    given = json.dumps([NAME, network_name, seeds, STEPS, *code])
    key = hashlib.sha256(given.encode()).hexdigest()
    if (found := kept.found(key)) is not None:
        return found
    params = {**(player.policy.params if player else {}), "steps": STEPS}
    batch = NuwaBatch(seeds, network(network_name), params=params, stagger=False)
    act = greedy(player, batch) if player else nuwa_hold
    got = returns(batch, act)
    return kept.keep(key, {str(number): float(value) for number, value in enumerate(got)})
