"""Questions about regions of what is observed, such as ``snd_cwnd > 200 and base_rtt_ms > 100``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.decisions.run import Run
from data.errors import UserError, unknown_name
from models.offline.regions import AXES, Axis, Float

_SIDES: dict[str, Callable[[Float, float], NDArray[np.bool_]]] = {
    ">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """Conditions that hold together, such as ``snd_cwnd > 200 and base_rtt_ms > 100``."""

    conditions: tuple[tuple[Axis, str, float], ...]

    @classmethod
    def read(cls, text: str) -> Question:
        """Read it.

        Raises
        ------
        UserError
            When it is none.
        """
        found = []
        axes = {axis.name: axis for axis in AXES}
        for part in re.split(r"\s+and\s+", text.strip()):
            match = re.fullmatch(r"(\w+)\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", part)
            if match is None:
                raise UserError(f"{text!r}: conditions such as 'snd_cwnd > 200 and base_rtt_ms > "
                                f"100' are understood, not {part!r}")  # fmt: skip
            name, side, number = match.groups()
            if name not in axes:
                raise unknown_name("axis", name, axes)
            found.append((axes[name], side, float(number)))
        return cls(tuple(found))

    def holds(self, run: Run) -> NDArray[np.bool_]:
        """Of which decisions of a run it is true, bool array [T, S]."""
        true = [
            _SIDES[side](axis.values(run.observation), at) for axis, side, at in self.conditions
        ]
        found: NDArray[np.bool_] = np.logical_and.reduce(true)
        return found

    def words(self) -> str:
        """In words."""
        return " ".join(
            axis.words(at, None) if side in (">", ">=") else axis.words(None, at)
            for axis, side, at in self.conditions
        )
