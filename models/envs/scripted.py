"""Scripted policies: what an agent has to beat, and what a person would do by hand.

A policy looks at a batch, as an agent does, and says what every part does next. Policies that need
something an agent can't see (which fixed k an episode has) change the scenario instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.scenario import Scenario
from features import macc, nuwa, tcco
from models.envs.macc import MaccBatch
from models.envs.nuwa import NuwaBatch
from models.envs.nuwa_loop import ACTIONS, K_HIGH, K_LOW
from models.envs.samplers import Sampler
from models.envs.tcco import TccoBatch

Actions = NDArray[np.int64]
Policy = Callable[[Any], Actions]
"""Takes a batch, returns int64 array [N, A]."""


def at_random(seed: int, drops: float = 0.02) -> Policy:
    """Every action as likely as any other; routers drop in a share ``drops`` of their steps."""
    rng = np.random.default_rng(seed)

    def act(batch: Any) -> Actions:
        counts = np.array([batch.action_counts[kind] for kind in batch.kinds])
        chosen: Actions = rng.integers(0, 1 << 30, (batch.num_envs, len(counts))) % counts
        if not isinstance(batch, MaccBatch):
            return chosen
        dropping = rng.random(chosen.shape) < drops
        chosen = np.where(batch.kinds == 1, dropping, chosen).astype(np.int64)
        return chosen

    return act


def tcco_windows(wanted: Callable[[TccoBatch], NDArray[Any]]) -> Policy:
    """Moves every subflow's target to a window and stays there.

    The expflag asks for a step up after some intervals without growth: that is taken, and taken
    back in the next step. At its upper bound a window can't grow, so that the flag would stay up:
    there it isn't heeded.

    Parameters
    ----------
    wanted : callable
        Takes the batch, returns windows in segments, [N, A] or a number.
    """

    def act(batch: TccoBatch) -> Actions:
        p = batch.params
        missing = np.broadcast_to(wanted(batch), batch.targets.shape) - batch.targets
        delta = np.clip(np.round(missing / np.maximum(1, batch.unit)), -p.reach, p.reach)
        explore = (batch.values[:, :, tcco.EXPFLAG] > 0) & (batch.targets < batch.most)
        return (np.where(explore, np.maximum(delta, 1), delta) + p.reach).astype(np.int64)

    return act


def tcco_constant(window: int) -> Policy:
    """A constant window (segments) for every subflow."""
    return tcco_windows(lambda batch: np.array(window))


def tcco_tracking(share: float = 1.25, payload_bytes: int = 1448) -> Policy:
    """What each path holds by its bottleneck and base RTT as observed, times a factor."""

    def wanted(batch: TccoBatch) -> NDArray[Any]:
        now = batch.values
        held = now[:, :, tcco.BOTTLENECK] * now[:, :, tcco.BASE_RTT] / 8e6 / payload_bytes
        return share * held

    return tcco_windows(wanted)


def tcco_hold(batch: TccoBatch) -> Actions:
    """Keep the windows that slow start left, whatever the expflag asks for."""
    return np.full(batch.actions.shape, batch.params.reach, np.int64)


def nuwa_hold(batch: NuwaBatch) -> Actions:
    """Keep k."""
    return np.full(batch.actions.shape, ACTIONS.index(1.0), np.int64)


def with_k(sampler: Sampler, k: float) -> Sampler:
    """Scenarios whose first flow begins with this k, for `nuwa_hold`."""

    def sample(rng: np.random.Generator) -> Scenario:
        spec = sampler(rng)
        first = spec.flows[0].model_copy(update={"k": k})
        return spec.model_copy(update={"flows": [first, *spec.flows[1:]]})

    return sample


def nuwa_thresholds(low: float = 0.2, empty_us: float = 0.0) -> Policy:
    """Large k where the delay is far from its target, small k near it.

    k goes up while the queueing delay is above T_d, to bring it down soon, and while it is below a
    share ``low`` of T_d or below ``empty_us``, to fill the link soon; else it goes down.

    Parameters
    ----------
    low, empty_us : float
        Both 0 leave the second rule out.
    """

    def act(batch: NuwaBatch) -> Actions:
        now = batch.values[:, 0]
        queueing, target = now[:, nuwa.QUEUEING], now[:, nuwa.TARGET]
        up = (queueing > target) | (queueing < np.maximum(low * target, empty_us))
        raised = np.where(now[:, nuwa.GAIN] < 1e3 * K_HIGH, ACTIONS.index(2.85), 1)
        lowered = np.where(now[:, nuwa.GAIN] > 1e3 * K_LOW, ACTIONS.index(0.25), 1)
        return np.where(up, raised, lowered)[:, None]

    return act


def macc_policy(window: int | None, drop_above: float = np.inf) -> Policy:
    """Senders go to a window and stay; routers drop what comes while their queue is longer.

    Parameters
    ----------
    window : int or None
        Segments; None keeps the windows that slow start left.
    drop_above : float
        Packets.
    """

    def act(batch: MaccBatch) -> Actions:
        senders = batch.params.senders
        actions = np.full(batch.actions.shape, 2, np.int64)
        queue = batch.values[:, senders:, macc.QUEUE]
        actions[:, senders:] = queue > drop_above
        if window is not None:
            for i in range(batch.num_envs):
                there = np.flatnonzero(batch.mask[i, :senders])
                missing = window - batch.windows(i)
                near = np.abs(missing) < (batch.params.step_segments + 1) // 2
                actions[i, there] = np.where(near, 2, np.where(missing > 0, 0, 1))
        return actions

    return act
