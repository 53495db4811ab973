"""Windows of logged runs, as batches that Q networks of online trainings learn from, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from data.decisions.run import Run
from features.intervals import scaled


@dataclass(frozen=True)
class Windows:
    """N windows of L decisions of one run each; D values of A parts are observed.

    Attributes
    ----------
    observations : float32 array [N, L + 1, A, D]
        Scaled to 0 to 1, as environments scale them; the last row is what came of the last action.
    mask : bool array [N, L + 1, A]
        Parts that are there; none is in rows beyond the run.
    actions : int64 array [N, L, A]
    own : float32 array [N, L, A]
        Rewards of the parts, 0 for those that aren't there.
    terminated : bool array [N, L]
        After these there is nothing more to come.
    known : bool array [N, L]
        Decisions of which is known what came of them.
    opening : bool array [N]
        Whether the window begins where its run does.
    """

    observations: NDArray[np.float32]
    mask: NDArray[np.bool_]
    actions: NDArray[np.int64]
    own: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    known: NDArray[np.bool_]
    opening: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.actions)

    def take(self, rows: NDArray[np.int64] | slice) -> Windows:
        """Some of them."""
        return Windows(*(getattr(self, one.name)[rows] for one in fields(self)))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All of them by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True)
class Cutter:
    """Cuts runs into windows.

    Attributes
    ----------
    length : int
        L, decisions of a window.
    parts : int
        A; a run has this many subflows at most.
    bounds : tuple
        ``features`` and ``half`` of the observation, as `features.intervals.scaled` takes them.
    """

    length: int
    parts: int
    bounds: tuple[tuple[object, ...], tuple[float, ...]]

    def starts(self, run: Run, offset: int = 0) -> NDArray[np.int64]:
        """Steps with which windows begin that lie side by side.

        Parameters
        ----------
        run : Run
        offset : int
            Where the first one begins; taken modulo `length`.
        """
        first = offset % self.length if run.steps > self.length else 0
        return np.arange(first, run.steps, self.length)

    def cut(self, run: Run, starts: NDArray[np.int64]) -> Windows:
        """Windows that begin with some steps of a run; one that goes beyond its end is filled up.

        Parameters
        ----------
        run : Run
        starts : int64 array [N]
        """
        length, there = self.length, run.subflows
        rows = starts[:, None] + np.arange(length + 1)
        inside = rows < run.steps
        at = np.minimum(rows, run.steps - 1)
        features, half = self.bounds
        seen = np.zeros((*rows.shape, self.parts, run.observation.shape[-1]), np.float32)
        seen[:, :, :there] = scaled(run.observation[at], features, half)  # type: ignore[arg-type]
        mask = np.zeros((*rows.shape, self.parts), bool)
        mask[:, :, :there] = inside[..., None]
        now, last = at[:, :-1], rows[:, :-1] == run.steps - 1
        actions = np.zeros((*now.shape, self.parts), np.int64)
        actions[:, :, :there] = run.action[now]
        own = np.zeros(actions.shape, np.float32)
        own[:, :, :there] = run.reward[now] * inside[:, :-1, None]
        # Of the last decision of a record that was cut off nobody knows what came.
        ends = last & run.last
        known = inside[:, 1:] | ends
        return Windows(seen * mask[..., None], mask, actions, own, ends, known, starts == 0)


def joined(blocks: Iterable[Windows]) -> Windows:
    """Blocks one after another."""
    found = list(blocks)
    return Windows(*(np.concatenate([getattr(b, one.name) for b in found])
                     for one in fields(Windows)))  # fmt: skip


def shuffled(
    blocks: Iterable[Windows], batch: int, held: int, rng: np.random.Generator
) -> Iterator[Windows]:
    """Batches drawn from a buffer that is filled up again and again; the rest is mixed last.

    Parameters
    ----------
    blocks : iterable of Windows
    batch : int
        Windows of a batch; what is left at the end and doesn't fill one is given up.
    held : int
        Windows from which half are drawn; no more than these and one block are in memory.
    rng : numpy Generator
    """
    waiting: list[Windows] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= max(held, 2 * batch):
            whole = joined(waiting)
            whole = whole.take(rng.permutation(len(whole)))
            given = (len(whole) // 2) // batch * batch
            yield from _batches(whole.take(slice(0, given)), batch)
            waiting = [whole.take(slice(given, None))]
            count = len(waiting[0])
    if waiting:
        whole = joined(waiting)
        yield from _batches(whole.take(rng.permutation(len(whole))), batch)


def _batches(whole: Windows, batch: int) -> Iterator[Windows]:
    for begin in range(0, len(whole) - batch + 1, batch):
        yield whole.take(slice(begin, begin + batch))
