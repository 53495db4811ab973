"""A small table of decisions of which it is known what is right."""

from dataclasses import replace

import numpy as np

from data.decisions.run import Run
from data.decisions.schema import About
from features import tcco
from features.spec import schema_hash

ABOUT = About(
    agent="tcco",
    observation=tuple(one.name for one in tcco.FEATURES),
    units=tuple(one.unit for one in tcco.FEATURES),
    schema_hash=schema_hash(tcco.FEATURES, {}),
    interval_us=20_000,
    actions=(-2.0, -1.0, 0.0, 1.0, 2.0),
    change_unit="unit of delta",
)
SMALL = {"batch": 16, "context": 4, "subflow_width": 8, "width": 16, "heads": 2, "shuffle": 256}


def runs(count, steps=40, subflows=2, seed=0):
    """On slow paths the most careful action earns most, on fast ones the boldest.

    Logged are mostly the next best ones: who only does as the logs do earns half.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        fast = rng.random((steps, subflows)) < 0.5
        seen = np.empty((steps, subflows, len(tcco.FEATURES)), np.float32)
        seen[:] = [1e8, 3e4, 80, 1e8, 2e4, 0]
        seen[..., tcco.THROUGHPUT] = np.where(fast, 4e8, 2e7) * rng.uniform(0.9, 1.1, fast.shape)
        usual, best = np.where(fast, 3, 1), np.where(fast, 4, 0)
        action = np.where(rng.random(fast.shape) < 0.5, usual, rng.integers(0, 5, fast.shape))
        reward = np.where(action == best, 1.0, np.where(action == usual, 0.5, 0.0))
        yield Run(
            f"run-{number:03d}",
            "careful" if number % 2 else "bold",
            f"scenario-{number // 2}",
            seen,
            action.astype(np.int8),
            (action - 2).astype(np.float32),
            reward.astype(np.float32),
        )


def ending(run):
    """The run, as one that ends by itself."""
    return replace(run, last=True, truncated=False)
