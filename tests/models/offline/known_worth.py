"""A problem of two states whose policies' worth is known: paths that are slow or fast."""

from dataclasses import dataclass

import numpy as np
import torch
from offline_tables import runs as tables

from data.decisions.run import Run
from features import tcco
from models.offline.acting import Acting

ACTIONS = 5
GAMMA = 0.8
FAST = np.array([0.1, 0.2, 0.4, 0.7, 0.9])
"""Odds that the path is fast after each action, whatever it was."""
PAID = np.array([[0.3, 0.2, 0.1, 0.0, -0.1], [1.0, 0.9, 0.7, 0.5, 0.2]])
"""Reward of each action on a slow path and on a fast one."""
BEHAVIOUR = np.array([[0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.2, 0.2]])
POLICY = np.array([[0.1, 0.1, 0.2, 0.3, 0.3], [0.3, 0.3, 0.2, 0.1, 0.1]])
"""Odds of each action on a slow path and on a fast one."""
_SLOW_BPS, _FAST_BPS = 2e7, 4e8


def worth(odds):
    """Of a policy in both states: the discounted mean reward of a decision."""
    after = odds @ FAST
    moves = np.stack([1 - after, after], axis=1)
    paid = (odds * PAID).sum(axis=1)
    return (1 - GAMMA) * np.linalg.solve(np.eye(2) - GAMMA * moves, paid)


def over(odds, length):
    """The same over some decisions alone, float64 array [2]."""
    after = odds @ FAST
    moves = np.stack([1 - after, after], axis=1)
    reach, found = np.eye(2), np.zeros(2)
    for step in range(length):
        found += GAMMA**step * reach @ (odds * PAID).sum(axis=1)
        reach = reach @ moves
    return found / (GAMMA ** np.arange(length)).sum()


def runs(count, steps=60, seed=0):
    """What `BEHAVIOUR` does."""
    rng = np.random.default_rng(seed)
    base = next(tables(1, steps, 1)).observation
    for number in range(count):
        fast, seen, action = np.zeros(steps, int), base.copy(), np.zeros((steps, 1), np.int8)
        reward = np.zeros((steps, 1), np.float32)
        for t in range(steps):
            state = (
                int(rng.random() < 0.5) if t == 0 else int(rng.random() < FAST[action[t - 1, 0]])
            )
            fast[t] = state
            action[t, 0] = rng.choice(ACTIONS, p=BEHAVIOUR[state])
            reward[t, 0] = PAID[state, action[t, 0]]
        seen[..., tcco.THROUGHPUT] = np.where(fast, _FAST_BPS, _SLOW_BPS)[:, None]
        yield Run(f"run-{number:03d}", "mixed", f"scenario-{number}", seen, action,
                  (action - 2).astype(np.float32), reward)  # fmt: skip


def sequences(count, length, seed=0):
    """States in which sequences of `BEHAVIOUR` begin, the ratios of `POLICY`, and rewards."""
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 2, count)
    first, ratios, rewards = states, np.empty((count, length)), np.empty((count, length))
    for t in range(length):
        action = (rng.random((count, 1)) > BEHAVIOUR.cumsum(axis=1)[states]).sum(axis=1)
        ratios[:, t] = POLICY[states, action] / BEHAVIOUR[states, action]
        rewards[:, t] = PAID[states, action]
        states = (rng.random(count) < FAST[action]).astype(int)
    return first, ratios, rewards


@dataclass
class Known(Acting):
    """A policy by its table of odds."""

    table: np.ndarray | None = None

    def odds(self, seen, mask, first, last=False):
        """As of `Acting`: what is scaled to above a half is fast."""
        shown = seen[:, -1:] if last else seen
        fast = (shown[..., tcco.THROUGHPUT] > 0.5).long()
        return torch.from_numpy(self.table).float()[fast]
