"""One run of decisions, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from arro3.core import Array, DataType, RecordBatch, Schema
from numpy.typing import NDArray


@dataclass(frozen=True)
class Run:
    """Decisions of one run: T steps of S subflows, D values of an observation.

    Attributes
    ----------
    name, behaviour, scenario : str
        See `data.decisions.schema.HEAD`.
    observation : float32 array [T, S, D]
        Before each decision, in the units of the features, as they were seen: not scaled.
    action : int8 array [T, S]
    change, reward : float32 array [T, S]
    last, truncated : bool
        How it ends: by itself, or where the record ends.
    """

    name: str
    behaviour: str
    scenario: str
    observation: NDArray[np.float32]
    action: NDArray[np.int8]
    change: NDArray[np.float32]
    reward: NDArray[np.float32]
    last: bool = False
    truncated: bool = True

    @property
    def steps(self) -> int:
        """T."""
        return len(self.observation)

    @property
    def subflows(self) -> int:
        """S."""
        return int(self.observation.shape[1])

    @property
    def rows(self) -> int:
        """Rows of the table: steps times subflows."""
        return self.steps * self.subflows

    def episode(self) -> dict[str, NDArray[Any]]:
        """The run by the names and shapes that Minari gives an episode.

        Returns
        -------
        dict
            ``observations`` float32 array [N + 1, S, D], ``actions`` int8 array [N, S], ``rewards``
            float32 array [N], those of all subflows together, ``terminations`` and ``truncations``
            bool array [N]. N is T - 1: what the last decision led to isn't in the table.
        """
        end = np.arange(self.steps - 1) == self.steps - 2
        return {
            "observations": self.observation,
            "actions": self.action[:-1],
            "rewards": self.reward[:-1].sum(axis=1),
            "terminations": end & self.last,
            "truncations": end & (not self.last),
        }

    def batch(self, schema: Schema) -> RecordBatch:
        """The run as rows of a table."""
        n, count = self.rows, self.subflows
        step = np.repeat(np.arange(self.steps, dtype=np.int32), count)
        end = step == self.steps - 1
        texts = [_same(text, n) for text in (self.name, self.behaviour, self.scenario)]
        columns = [
            texts[0],
            step,
            np.tile(np.arange(count, dtype=np.int8), self.steps),
            np.full(n, count, np.int8),
            *texts[1:],
            *(np.ascontiguousarray(column) for column in self.observation.reshape(n, -1).T),
            self.action.reshape(n),
            self.change.reshape(n),
            self.reward.reshape(n),
            step == 0,
            end & self.last,
            end & self.truncated,
        ]
        arrays = [
            Array.from_numpy(column) if isinstance(column, np.ndarray) else column
            for column in columns
        ]
        return RecordBatch.from_arrays(arrays, schema=schema)


def _same(text: str, count: int) -> Array:
    """A column that holds one text in every row."""
    return Array([text], DataType.utf8()).take(Array.from_numpy(np.zeros(count, np.uint32)))
