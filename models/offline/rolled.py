"""Decisions of policies in TCCO's own environment: logs of which the truth can be played, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from data.decisions.run import Run
from data.decisions.schema import About
from features import tcco
from features.spec import schema_hash
from models.envs.scripted import Policy
from models.envs.tcco import TccoBatch


def about(batch: TccoBatch, command: str = "") -> About:
    """What a file of these decisions says of itself."""
    p = batch.params
    return About(
        agent="tcco",
        observation=tuple(one.name for one in tcco.FEATURES),
        units=tuple(one.unit for one in tcco.FEATURES),
        schema_hash=schema_hash(tcco.FEATURES, {}),
        interval_us=p.observation.interval_us,
        actions=tuple(float(delta) for delta in range(-p.reach, p.reach + 1)),
        change_unit="unit of delta",
        params={"params": p.model_dump(mode="json")},
        command=command,
    )


def mostly(policy: Policy, random: float, seed: int) -> Policy:
    """A policy that takes an action at random in a share of its decisions, subflow by subflow."""
    rng = np.random.default_rng(seed)

    def act(batch: Any) -> Any:
        actions = policy(batch)
        drawn = rng.integers(0, batch.action_counts[0], actions.shape)
        return np.where(rng.random(actions.shape) < random, drawn, actions)

    return act


def rolled(batch: TccoBatch, policy: Policy, name: str, seed: int, steps: int) -> Iterator[Run]:
    """One run of each environment of a batch, from its first decision on.

    Parameters
    ----------
    batch : TccoBatch
        Closed by who made it; its episodes are no shorter than ``steps``.
    policy : callable
    name : str
        Of the policy, as ``behaviour``.
    seed : int
        Which episodes; they are the runs' scenarios.
    steps : int
        Decisions of a run, which is cut off there.
    """
    batch.reset(seed)
    lanes, parts = batch.mask.shape
    seen = np.zeros((steps, lanes, parts, len(tcco.FEATURES)), np.float32)
    actions = np.zeros((steps, lanes, parts), np.int8)
    rewards = np.zeros((steps, lanes, parts), np.float32)
    there = batch.mask.copy()
    for t in range(steps):
        seen[t] = batch.values
        chosen = policy(batch)
        batch.step(chosen)
        actions[t], rewards[t] = chosen, batch.rewards
    for i in range(lanes):
        own = there[i]
        yield Run(
            f"{name}-{seed}-{i}",
            name,
            f"episode-{seed}-{i}",
            seen[:, i, own],
            actions[:, i, own],
            (actions[:, i, own] - batch.params.reach).astype(np.float32),
            rewards[:, i, own],
        )
