"""Events of a file wait here until they go to a part: in memory, and on disk if they are many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from data.schema import VARIABLES

Ints = NDArray[np.int64]
MEMORY_BYTES = 64 << 20
BYTES_PER_EVENT = 21
NUMBER_OF_VARIABLES = len(VARIABLES)


class Spool:
    """Collects events and gives them back by socket and variable, each in order of arrival.

    What exceeds ``memory_bytes`` is written to ``directory`` as runs sorted by socket and
    variable, so that memory doesn't grow with the file.

    Parameters
    ----------
    directory : Path
        Where runs may be written.
    memory_bytes : int, optional
        How much is kept in memory; ``MEMORY_BYTES`` by default.
    """

    def __init__(self, directory: Path, memory_bytes: int | None = None) -> None:
        self._directory = directory
        self._limit = max((memory_bytes or MEMORY_BYTES) // BYTES_PER_EVENT, 1)
        self._pending: list[tuple[NDArray[np.int64], Ints, Ints]] = []
        self._count = 0
        self._runs: list[_Run] = []
        self.total = 0

    def add(
        self, socket: NDArray[np.int32], variable: NDArray[np.int8], time_us: Ints, value: Ints
    ) -> None:
        """Add events, given as columns of one length."""
        if not len(socket):
            return
        key = socket.astype(np.int64) * NUMBER_OF_VARIABLES + variable
        self._pending.append((key, time_us, value))
        self._count += len(socket)
        self.total += len(socket)
        if self._count >= self._limit:
            self._flush(to_disk=True)

    def _flush(self, to_disk: bool) -> None:
        if not self._pending:
            return
        key = np.concatenate([part[0] for part in self._pending])
        time_us = np.concatenate([part[1] for part in self._pending])
        value = np.concatenate([part[2] for part in self._pending])
        self._pending, self._count = [], 0
        bounds = np.zeros(int(key.max()) + 2, np.int64)
        time_sorted, value_sorted = np.empty_like(time_us), np.empty_like(value)
        _sort_by_key(key, time_us, value, bounds, time_sorted, value_sorted)
        if to_disk:
            with tempfile.NamedTemporaryFile(
                dir=self._directory, prefix="run-", delete=False
            ) as file:
                # numpy's own writing loses the system's reason for a refusal.
                file.write(time_sorted.data)
                file.write(value_sorted.data)
            self._runs.append(_Run(bounds, None, None, Path(file.name)))
        else:
            self._runs.append(_Run(bounds, time_sorted, value_sorted, None))

    def seal(self) -> None:
        """Close the spool to further events; it has to be called before reading."""
        self._flush(to_disk=False)

    def count(self, socket: int) -> int:
        """Number of events of a socket."""
        return sum(
            run.size(socket * NUMBER_OF_VARIABLES + variable)
            for run in self._runs
            for variable in range(NUMBER_OF_VARIABLES)
        )

    def segments(self, socket: int, variable: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield (time_us, value) arrays of one socket's variable, in order of arrival."""
        key = socket * NUMBER_OF_VARIABLES + variable
        for run in self._runs:
            if run.size(key):
                yield run.read(key)

    def close(self) -> None:
        """Remove what was written."""
        for run in self._runs:
            if run.path is not None:
                run.path.unlink(missing_ok=True)
        self._runs, self._pending = [], []


class _Run:
    """Events sorted by key, in memory or in a file (all times, then all values)."""

    def __init__(
        self, bounds: Ints, time_us: Ints | None, value: Ints | None, path: Path | None
    ) -> None:
        self._bounds = bounds
        self._time_us = time_us
        self._value = value
        self.path = path

    def size(self, key: int) -> int:
        if key + 1 >= len(self._bounds):
            return 0
        return int(self._bounds[key + 1] - self._bounds[key])

    def read(self, key: int) -> tuple[Ints, Ints]:
        first, size = int(self._bounds[key]), self.size(key)
        if self._time_us is not None and self._value is not None:
            return self._time_us[first : first + size], self._value[first : first + size]
        assert self.path is not None
        total = int(self._bounds[-1])
        time_us = np.fromfile(self.path, np.int64, size, offset=8 * first)
        value = np.fromfile(self.path, np.int64, size, offset=8 * (total + first))
        return time_us, value


@njit(cache=True)
def _sort_by_key(key, time_us, value, bounds, time_sorted, value_sorted):  # type: ignore[no-untyped-def]
    """Counting sort: keys are small and dense, and arrival order has to stay."""
    for k in key:
        bounds[k + 1] += 1
    for i in range(1, len(bounds)):
        bounds[i] += bounds[i - 1]
    position = bounds[:-1].copy()
    for i in range(len(key)):
        at = position[key[i]]
        time_sorted[at] = time_us[i]
        value_sorted[at] = value[i]
        position[key[i]] = at + 1
