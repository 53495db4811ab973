"""Environments of a policy's training, and decisions that it takes in them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from features.whole import divisors
from models.policies.observed import observed
from models.policies.policy import Policy
from models.policies.scenes import ENVIRONMENTS
from models.rl.line import TWIN

if TYPE_CHECKING:
    from models.envs.batching import Batching

LANES = 4


@dataclass(frozen=True)
class Recorded:
    """What was observed, sequence after sequence, by parts that decide together.

    Attributes
    ----------
    values : float64 array [n, A, d]
        In the units of `features.whole`.
    there : bool array [n, A]
    """

    values: NDArray[np.float64]
    there: NDArray[np.bool_]


def environment(policy: Policy, lanes: int, part: int) -> Batching:
    """Episodes side by side of the scenarios that a policy was trained in.

    Parameters
    ----------
    policy : Policy
    lanes : int
    part : int
        Of `models.envs.samplers.SPLITS`; other scenarios are told apart by seeds.
    """
    from models.envs.samplers import of_split

    settings = {
        name: value for name, value in policy.settings.get("env", {}).items() if name not in TWIN
    }
    if "sampler" in settings:
        settings["sampler"] = of_split(str(settings["sampler"]), part)
    module, _, maker = ENVIRONMENTS[policy.environment].makers[0].partition(":")
    params = {**settings.get("params", {}), **policy.params}
    make = getattr(importlib.import_module(module), maker)
    batch: Batching = make(lanes, 1, {**settings, "params": params})
    batch.stagger = False
    return batch


def recorded(policy: Policy, rows: int, seed: int) -> Recorded:
    """Observations on which a policy decides, in episodes of validation.

    Parameters
    ----------
    policy : Policy
    rows : int
        At least so many, each of all parts that decide together: a connection's subflows, or one
        part of a team.
    seed : int
        Of the environments.
    """
    from models.envs.samplers import VALIDATION
    from models.one_thread import one_thread
    from models.rl.layout import Layout
    from models.rl.policy import Greedy

    batch = environment(policy, LANES, VALIDATION)
    layout = Layout.of(batch)
    own = layout.parts_of(policy.kinds[0])
    team = len(layout.action_counts) > 1
    steps = -(-rows // (LANES * (len(own) if team else 1)))
    values, there = [], []
    try:
        batch.reset(seed)
        with one_thread():
            act = Greedy(policy.module(layout))
            for _ in range(steps):
                values.append(whole_values(batch, policy, own))
                there.append(batch.mask[:, own].copy())
                batch.step(act(batch))
    finally:
        batch.close()
    # [steps, lanes, parts, d] -> lane after lane, of a team part after part.
    seen, mask = np.array(values).swapaxes(0, 1), np.array(there).swapaxes(0, 1)
    if team:
        seen, mask = seen.swapaxes(1, 2), mask.swapaxes(1, 2)
        return Recorded(seen.reshape(-1, 1, seen.shape[-1]), mask.reshape(-1, 1))
    return Recorded(seen.reshape(-1, *seen.shape[2:]), mask.reshape(-1, mask.shape[-1]))


def whole_values(batch: Any, policy: Policy, own: Sequence[int]) -> NDArray[np.float64]:
    """What parts observe in the units of `features.whole`, float64 array [N, parts, d]."""
    features, _ = observed(policy.environment, policy.kinds[0])
    found: NDArray[np.float64] = batch.values[:, list(own), : len(features)] / divisors(features)
    return found


def side_by_side(
    values: NDArray[np.float64], there: NDArray[np.bool_], parts: int
) -> NDArray[np.float64]:
    """Rows as exported networks take them, float64 array [n, inputs]; see `export.policy.flat`."""
    if parts == 1:
        return values[:, 0]
    # What was observed before a subflow ended is nothing that a network looks at.
    seen = np.where(there[..., None], values, 0.0)
    return np.concatenate([seen, there[..., None]], axis=2).reshape(len(values), -1)
