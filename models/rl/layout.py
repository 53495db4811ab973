"""What a network has to know of its environment: parts, kinds, actions, observations."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray

from models.envs.batch import BatchEnv


@dataclass(frozen=True)
class Layout:
    """The part of a `BatchEnv` that doesn't change, as plain values.

    A network's own layout may have more features, see `models.rl.networks.module.Standardise`.

    Attributes
    ----------
    kinds : tuple of int
        Kind of each of the A parts.
    action_counts, feature_counts : tuple of int
        Of each kind.
    context : int
        Observations that the paper's agent looks at.
    """

    kinds: tuple[int, ...]
    action_counts: tuple[int, ...]
    feature_counts: tuple[int, ...]
    context: int

    @classmethod
    def of(cls, env: BatchEnv) -> Layout:
        """The layout of an environment."""
        kinds = tuple(int(kind) for kind in env.kinds)
        return cls(kinds, tuple(env.action_counts), tuple(env.feature_counts), env.context)

    @classmethod
    def read(cls, tree: dict[str, Any]) -> Layout:
        """The layout that `plain` wrote."""
        lists = {name: tuple(tree[name]) for name in ("kinds", "action_counts", "feature_counts")}
        return cls(**lists, context=tree["context"])

    def doubled(self) -> Layout:
        """With two inputs for each of an observation's values."""
        return replace(self, feature_counts=tuple(2 * count for count in self.feature_counts))

    def plain(self) -> dict[str, Any]:
        """As lists and numbers."""
        tree = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in tree.items()}

    @property
    def parts(self) -> int:
        """A."""
        return len(self.kinds)

    @property
    def features(self) -> int:
        """D."""
        return max(self.feature_counts)

    @property
    def actions(self) -> int:
        """C, the most actions that a part has."""
        return max(self.action_counts)

    def parts_of(self, kind: int) -> list[int]:
        """Numbers of the parts of a kind."""
        return [part for part, one in enumerate(self.kinds) if one == kind]

    def legal(self) -> NDArray[np.bool_]:
        """Which of the C actions each part has, bool array [A, C]."""
        counts = np.array([self.action_counts[kind] for kind in self.kinds])
        return np.arange(self.actions)[None] < counts[:, None]

    def spaces(self) -> tuple[Box, MultiDiscrete]:
        """Space of an environment's observation, [A, D], and of its actions, [A]."""
        box = Box(0.0, 1.0, (self.parts, self.features), np.float32)
        return box, MultiDiscrete([self.action_counts[kind] for kind in self.kinds])
