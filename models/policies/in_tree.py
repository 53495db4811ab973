"""A policy that is a tree: it sees what `features.derived` makes of the agent's observation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from features.derived import Deriver
from models.onnx_safe import open_session
from models.policies.decisions import whole_values
from models.policies.observed import observed
from models.policies.policy import Policy

if TYPE_CHECKING:
    from models.rl.layout import Layout

NETWORK = "tree"
"""What a description calls it where others name their network."""


@dataclass(frozen=True)
class TreePolicy(Policy):
    """A policy of one tree for each kind of parts that it decides for.

    Attributes
    ----------
    trees : tuple of (int, bytes)
        Kind and the tree's ONNX file, which answers as its integers do: every value that it sees
        is a whole number that float32 holds.
    """

    trees: tuple[tuple[int, bytes], ...] = ()

    def actor(self, layout: Layout) -> TreeActor:
        """What acts in a batch of this layout."""
        return TreeActor(self, layout)

    def only(self, name: str, kinds: tuple[int, ...] | None = None) -> Policy:
        """The part of it that decides for some kinds."""
        wanted = self.kinds if kinds is None else kinds
        kept = tuple(one for one in self.trees if one[0] in wanted)
        return replace(self, name=name, kinds=wanted, trees=kept)

    def joined(self, other: Policy, name: str) -> Policy:
        """With another of the same team for its own kinds of parts."""
        same = ("environment", "params", "layout")
        if not isinstance(other, TreePolicy):
            raise UserError(f"{name}: {self.name} is a tree and {other.name} is none")
        for what in same:
            if getattr(self, what) != getattr(other, what):
                raise UserError(f"{name}: {self.name} and {other.name} differ in {what}")
        kinds = tuple(sorted({*self.kinds, *other.kinds}))
        weights = {**self.weights, **other.weights}
        trees = tuple(sorted((*self.trees, *other.trees)))
        return replace(self, name=name, kinds=kinds, weights=weights, trees=trees)


class TreeActor:
    """Takes the tree's action everywhere; remembers what changes over time are taken from."""

    def __init__(self, policy: TreePolicy, layout: Layout) -> None:
        self._parts = [_Kind(policy, kind, content, layout) for kind, content in policy.trees]

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        """Actions, int64 array [N, A]; 0 for parts of other kinds."""
        actions = np.zeros(batch.mask.shape, np.int64)
        for part in self._parts:
            part.act(batch, actions)
        return actions


class _Kind:
    def __init__(self, policy: TreePolicy, kind: int, content: bytes, layout: Layout) -> None:
        self._policy, self._kind = replace(policy, kinds=(kind,)), kind
        self._own = layout.parts_of(kind)
        self._session = open_session(content, policy.name)
        self._answer = self._session.get_outputs()[0].name
        self._deriver: Deriver | None = None

    def act(self, batch: Any, actions: NDArray[np.int64]) -> None:
        """Write the actions of this kind's parts."""
        if not self._own:
            return
        values = whole_values(batch, self._policy, self._own)
        lanes, parts, width = values.shape
        if self._deriver is None:
            features, _ = observed(self._policy.environment, self._kind)
            environment = self._policy.environment
            self._deriver = Deriver(environment, self._kind, features, lanes * parts)
        started = np.repeat(np.asarray(batch.started, bool), parts)
        seen = self._deriver.update(values.reshape(-1, width), started)
        found = self._session.run([self._answer], {"features": seen.astype(np.float32)})[0]
        chosen = found > 0.5 if found.ndim == 1 else found.argmax(axis=1)
        actions[:, self._own] = np.asarray(chosen, np.int64).reshape(lanes, parts)
