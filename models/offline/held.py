"""Decisions held against what logs support."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.offline import regions
from models.offline.corners import empty_corner
from models.offline.regions import REGIONS, SHAPE
from models.offline.support import Support


@dataclass
class Held:
    """Decisions held against what logs support.

    Attributes
    ----------
    decisions : int64 array [R]
        How many there are in each region.
    rare : int
        Those whose action has too few logged decisions in their region.
    """

    support: Support
    least: int
    decisions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(REGIONS, np.int64))
    rare: int = 0

    def add(
        self, seen: NDArray[np.float32], actions: NDArray[np.integer[Any]] | None = None
    ) -> None:
        """Hold decisions of a run against the logs: float32 array [T, S, D], int array [T, S]."""
        places = regions.places(seen)
        self.decisions += np.bincount(places.ravel(), minlength=REGIONS)
        if actions is not None:
            self.rare += int((self.support.actions[places, actions] < self.least).sum())

    def plain(self) -> dict[str, Any]:
        """Shares of what lies outside, and where most of it does.

        Returns
        -------
        dict
            ``decisions``, ``outside``: share in regions with less than ``least`` logged decisions,
            ``rare_action``: share of actions with less in their region, and ``where``: in which
            region the most lie that the logs don't hold, in words.
        """
        total = int(self.decisions.sum())
        known = self.support.decisions
        beyond = np.where(known < self.least, self.decisions, 0)
        found: dict[str, Any] = {
            "decisions": total,
            "outside": float(beyond.sum() / total) if total else 0.0,
            "rare_action": self.rare / total if total else 0.0,
            "where": None,
        }
        if beyond.any():
            found["where"] = self._where(int(beyond.argmax()))
        return found

    def _where(self, region: int) -> str:
        counts = self.support.decisions.reshape(SHAPE)
        bins = [int(at) for at in np.unravel_index(region, SHAPE)]
        for least in (1, self.least):
            words = empty_corner(counts, bins, least)
            if words is not None:
                fewest = "no decision" if least == 1 else f"fewer than {least} decisions"
                return f"the logs hold {fewest} {words}"
        raise AssertionError("only regions that lack decisions are asked for")
