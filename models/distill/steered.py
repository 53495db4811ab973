"""A tree that steers to a window, found by its return alone: nobody's actions are imitated.

An imitated network goes on from what it remembers, and a tree that errs once leads it to where it
never was. This tree has no such memory to lose: it goes to a share of what the path holds, as
`models.envs.scripted.tcco_tracking` does, and which share that is depends on the path. The shares,
and where one kind of path ends and the next begins, are searched for by the cross-entropy method
(Rubinstein 1999): draw candidates, play them, and draw the next ones around the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from features.derived import ONE
from models.distill.params import STEERED, Distill
from models.distill.rollout import Task, returns
from models.distill.tree import Student, replace_nodes
from models.envs.samplers import TRAINING

Floats = NDArray[np.float64]
Node = int | tuple[str, float, Any, Any]
"""An action; or a column, the largest value that goes left, and what is left and right."""

CANDIDATES, BEST = 14, 5
"""Drawn in a generation, and how many of them the next is drawn around."""
KEPT_SPREAD = 0.5
"""Weight of the spread before, so that a search doesn't end by chance."""
FIRST_SEED = 5000
"""Of the search's episodes; each generation has others."""


@dataclass(frozen=True)
class Steering:
    """What decides of a path's share, with its first value and how far that may be off.

    Attributes
    ----------
    near, middle, far : float
        Share of what the path holds by the base RTT, which is below, between or above two bounds.
    small, slack : float
        Added where the path holds few segments, and where less arrives than it carries.
    below : float
        Of the bottleneck's rate, what counts as less.
    first, more : float
        Lower bound of the base RTT in powers of two of 10 ms, and how many of them the upper one is
        above it.
    few : float
        How many segments are few, in powers of two of 64.
    """

    near: float
    middle: float
    far: float
    small: float
    slack: float
    below: float
    first: float
    more: float
    few: float


START = np.array([1.4, 1.25, 1.2, 0.1, -0.05, 0.7, 0.0, 2.0, -1.0])
SPREAD = np.array([0.15, 0.1, 0.1, 0.15, 0.1, 0.1, 0.7, 0.7, 1.0])
"""In the order of `Steering`: around the tracking script's 1.25, and more on short paths, where a
queue costs little time."""


def searched(task: Task, params: Distill, told: Callable[[int, Student], None]) -> None:
    """Search for as many generations as the settings ask for.

    Parameters
    ----------
    task : Task
    params : Distill
    told : callable
        Is given the number of each generation, from 0, and the tree that it ended with.

    Raises
    ------
    UserError
        When the policy sets no windows by steps of what a path holds.
    """
    if task.teacher.environment != "tcco":
        raise UserError(
            f"distill.steered: {task.teacher.name} doesn't steer windows to a share of what a path "
            "holds: leave it at 0"
        )
    generator = np.random.default_rng(params.seed)
    mean, spread = START, SPREAD
    for number in range(params.steered):
        drawn = generator.normal(mean, spread, (CANDIDATES, len(mean)))
        drawn[0] = mean
        seed = FIRST_SEED + params.seed + number * params.lanes
        scores = [
            returns(task, student(task, one, number), TRAINING, seed, params.lanes, params.steps)
            for one in drawn
        ]
        best = drawn[np.argsort([-one.mean() for one in scores])[:BEST]]
        mean = best.mean(axis=0)
        spread = KEPT_SPREAD * spread + (1 - KEPT_SPREAD) * best.std(axis=0)
        told(number, student(task, mean, number))


def student(task: Task, numbers: Floats, number: int = 0) -> Student:
    """The tree of a `Steering`, as its numbers.

    Parameters
    ----------
    task : Task
    numbers : float64 array [9]
        In the order of `Steering`'s fields.
    number : int
        Of the generation.
    """
    names = [feature.name for feature in task.deriver(1).features]
    settings = task.teacher.params
    step, reach = float(settings["step_share"]), int(settings["reach"])
    return Student(
        _estimator(_by_rtt(Steering(*numbers), step, reach), names, reach), STEERED, number
    )


def _by_rtt(s: Steering, step: float, reach: int) -> Node:
    lower, upper = (1e4 * 2.0**power for power in (s.first, s.first + abs(s.more)))
    near, middle, far = (_by_size(s, share, step, reach) for share in (s.near, s.middle, s.far))
    return ("base_rtt_us", lower, near, ("base_rtt_us", upper, middle, far))


def _by_size(s: Steering, share: float, step: float, reach: int) -> Node:
    small, large = (_by_rate(s, one, step, reach) for one in (share + s.small, share))
    return ("held_segments", 64 * 2.0**s.few, small, large)


def _by_rate(s: Steering, share: float, step: float, reach: int) -> Node:
    slack, full = (_to(one, step, reach) for one in (share + s.slack, share))
    return ("rate_over_peak", s.below * ONE, slack, full)


def _to(share: float, step: float, reach: int) -> Node:
    """Go to a share; while expflag asks for growth, by a step up at least."""
    free = _steps(share, step, range(-reach, reach + 1), reach)
    growing = _steps(share, step, range(1, reach + 1), reach)
    return ("expflag", 0.5, free, growing)


def _steps(share: float, step: float, deltas: range, reach: int) -> Node:
    """The delta whose end is nearest to the share: halved until one is left."""
    if len(deltas) == 1:
        return deltas[0] + reach
    half = len(deltas) // 2
    # A window above this is nearer to where one of the lesser deltas leads.
    bound = (share - (deltas[half] - 0.5) * step) * ONE
    more, less = (_steps(share, step, part, reach) for part in (deltas[half:], deltas[:half]))
    return ("cwnd_over_held", bound, more, less)


def _estimator(root: Node, names: list[str], reach: int) -> Any:
    """The classifier of a tree that is given by its nodes; thresholds are whole numbers."""
    from sklearn.tree import DecisionTreeClassifier

    actions = 2 * reach + 1
    estimator = DecisionTreeClassifier(max_depth=1)
    estimator.fit(np.zeros((actions, len(names)), np.float32), range(actions))
    rows: list[tuple[int, int, int, float]] = []
    says: list[int] = []
    depth = _laid_out(root, names, rows, says, 0)
    nodes = np.zeros(len(rows), estimator.tree_.__getstate__()["nodes"].dtype)
    for at, (left, right, feature, threshold) in enumerate(rows):
        nodes[at]["left_child"], nodes[at]["right_child"] = left, right
        nodes[at]["feature"], nodes[at]["threshold"] = feature, threshold
    nodes["n_node_samples"] = nodes["weighted_n_node_samples"] = 1
    # Inner nodes say nothing, which is all actions alike.
    values = np.full((len(rows), 1, actions), 1 / actions)
    leaves = np.array(says) >= 0
    values[leaves, 0] = np.eye(actions)[np.array(says)[leaves]]
    replace_nodes(estimator, nodes, values, depth, len(names))
    return estimator


def _laid_out(
    node: Node,
    names: list[str],
    rows: list[tuple[int, int, int, float]],
    says: list[int],
    depth: int,
) -> int:
    """Append a node and all below it, the left one first; returns the depth reached."""
    at = len(rows)
    rows.append((-1, -1, -2, -2.0))
    says.append(node if isinstance(node, int) else -1)
    if isinstance(node, int):
        return depth
    name, bound, left, right = node
    left_depth = _laid_out(left, names, rows, says, depth + 1)
    place = len(rows)
    right_depth = _laid_out(right, names, rows, says, depth + 1)
    # Columns are whole numbers, so that half a number more separates as the bound itself does.
    rows[at] = (at + 1, place, names.index(name), float(np.floor(bound)) + 0.5)
    return max(left_depth, right_depth)
