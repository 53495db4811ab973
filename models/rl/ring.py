"""The replay memory: a ring of steps in plain arrays, from which windows are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.rl import tree
from models.rl.fragment import Fragment

Array = NDArray[Any]
FIELDS = ("observations", "mask", "actions", "rewards", "terminated", "over")


@dataclass(slots=True)
class Windows:
    """B windows of L rows and the row after; `models.rl.fragment.Fragment` says what a row is.

    Attributes
    ----------
    observations : float32 array [B, L + 1, A, D]
    mask : bool array [B, L + 1, A]
    actions : int8 array [B, L + 1, A]
    rewards : float32 array [B, L + 1]
    terminated, over : bool array [B, L + 1]
    places : int64 array [B]
        For `Ring.set_priorities`.
    weights : float32 array [B]
        By which each counts in the loss, so that unlike odds of being drawn don't bias it.
    own : float32 array [B, L + 1, A], optional
        Each part's own reward, if the ring keeps them.
    """

    observations: Array
    mask: Array
    actions: Array
    rewards: Array
    terminated: Array
    over: Array
    places: NDArray[np.int64]
    weights: NDArray[np.float32]
    own: Array | None = None


class Ring:
    """Rows of N lanes, one of each environment; the oldest are overwritten.

    A lane's rows lie one after the other, so a window is one piece of memory. Windows don't cross
    the end of the arrays, nor the place where the newest row meets the oldest.

    Parameters
    ----------
    capacity : int
        Rows of all lanes together.
    lanes, parts, features : int
        N, A and D.
    length : int
        L, rows of a window without the one after.
    seed : int
        Of its own generator.
    alpha : float
        How much priorities matter: 0 draws evenly, 1 as they say.
    own : bool
        Whether each part's own reward is kept besides the team's.
    """

    def __init__(
        self,
        capacity: int,
        lanes: int,
        parts: int,
        features: int,
        length: int = 1,
        seed: int = 0,
        alpha: float = 0.0,
        own: bool = False,
    ) -> None:
        rows = max(capacity // lanes, 2 * (length + 1))
        self.rows, self.lanes, self.length, self.alpha = rows, lanes, length, alpha
        fields = [
            ("observations", np.float32, (parts, features)),
            ("rewards", np.float32),
            ("mask", bool, (parts,)),
            ("actions", np.int8, (parts,)),
            ("terminated", bool),
            ("over", bool),
            *([("own", np.float32, (parts,))] if own else []),
        ]
        self.memory = np.zeros((lanes, rows), np.dtype(fields, align=True))
        names = (*FIELDS, "own") if own else FIELDS
        self.arrays: dict[str, Array] = {name: self.memory[name] for name in names}
        self.head = self.filled = 0
        self.rng = np.random.default_rng(seed)
        # All windows, each as one value, in the same memory: one is copied in a single go.
        row = self.memory.dtype.itemsize
        window = np.dtype((np.void, row * (length + 1)))
        self._windows: Array = np.ndarray(
            (lanes * rows - length,), window, self.memory.data, strides=(row,)
        )
        self._tree = tree.new(lanes * rows) if alpha > 0 else None
        self._most = 1.0

    def __len__(self) -> int:
        return self.filled * self.lanes

    @property
    def starts(self) -> int:
        """Rows of a lane at which a window can start."""
        if self.filled < self.rows:
            return max(0, self.filled - self.length)
        return max(0, self.head - self.length) + max(0, self.rows - self.length - self.head)

    def add(self, fragments: list[Fragment | None]) -> None:
        """Add the fragments of all runners, of equally many rows, in the order of their lanes.

        Of a runner that brought None the rows are marked, so that nothing is learned from them.
        """
        count = next(len(one.over) for one in fragments if one is not None)
        share = self.lanes // len(fragments)
        # In two pieces where they don't fit before the end.
        for begin in range(0, count, self.rows):
            end = min(count, begin + self.rows)
            first = min(end - begin, self.rows - self.head)
            for a, b in ((begin, begin + first), (begin + first, end)):
                if b > a:
                    for number, one in enumerate(fragments):
                        lanes = slice(number * share, (number + 1) * share)
                        self._write(one, a, b, lanes, begins=a == 0)
                    self._advance(b - a)

    def _write(self, one: Fragment | None, a: int, b: int, lanes: slice, begins: bool) -> None:
        rows = slice(self.head, self.head + b - a)
        over = self.arrays["over"]
        if one is None or (one.fresh and begins):
            over[lanes, self.head - 1] = True
        if one is None:
            over[lanes, rows] = True
            return
        for name, array in self.arrays.items():
            array[lanes, rows] = np.swapaxes(getattr(one, name)[a:b], 0, 1)

    def _advance(self, count: int) -> None:
        if self._tree is not None:
            gone = np.arange(self.head - self.length, self.head + count)
            ready = gone[: -self.length]
            if self.filled < self.rows:
                ready = ready[ready >= 0]
            self._prioritise(gone, 0.0)
            self._prioritise(ready, self._most**self.alpha)
        self.head = (self.head + count) % self.rows
        self.filled = min(self.rows, self.filled + count)

    def _prioritise(self, rows: NDArray[np.int64], value: float) -> None:
        """Give all lanes' windows that start at some rows a priority, where there is such one."""
        whole = rows % self.rows
        if value > 0:
            whole = whole[whole < self.rows - self.length]
        places = (np.arange(self.lanes)[:, None] * self.rows + whole).ravel()
        assert self._tree is not None
        tree.put(self._tree, places, np.full(len(places), value))

    def sample(self, count: int, beta: float = 0.0) -> Windows:
        """Draw windows; with priorities by them, evenly otherwise.

        Parameters
        ----------
        count : int
        beta : float
            How far the weights make up for the priorities: 0 not at all, 1 wholly.

        Raises
        ------
        ValueError
            When there is no whole window yet.
        """
        starts = self.starts
        if not starts:
            raise ValueError("ring: no whole window yet")
        draw = self.rng.random(count)
        if self._tree is None:
            weights = np.ones(count, np.float32)
            # Quicker than whole numbers from the generator, and even to 1 in 2^53.
            whole = (draw * (starts * self.lanes)).astype(np.int64)
            lane = whole // starts
            places = whole + lane * (self.rows - starts)
            if self.filled == self.rows:
                before = max(0, self.head - self.length)
                places[places - lane * self.rows >= before] += self.head - before
        else:
            places, weights = tree.draw(self._tree, draw, beta)
        found = self._windows[places].view(self.memory.dtype).reshape(count, self.length + 1)
        seen, mask, actions, rewards, terminated, over = (found[name] for name in FIELDS)
        own = found["own"] if "own" in self.arrays else None
        return Windows(seen, mask, actions, rewards, terminated, over, places, weights, own)

    def set_priorities(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Let windows be drawn by how wrong their values were; those overwritten since are left."""
        if self._tree is None:
            return
        value = np.abs(errors).astype(np.float64) + 1e-6
        self._most = max(self._most, float(value.max()))
        there = self._tree[len(self._tree) // 2 + places] > 0
        tree.put(self._tree, places[there], value[there] ** self.alpha)

    def _raw(self) -> NDArray[np.uint8]:
        """The rows' bytes [N, R, size], with those between fields, which a copy leaves open."""
        return self.memory.view(np.uint8).reshape(self.lanes, self.rows, -1)

    def get_state(self) -> dict[str, Any]:
        """Rows that are filled, priorities and the generator."""
        state: dict[str, Any] = {"rows": self._raw()[:, : self.filled]}
        state |= {"head": self.head, "filled": self.filled, "most": self._most}
        state["rng"] = self.rng.bit_generator.state
        if self._tree is not None:
            half = len(self._tree) // 2
            state["tree"] = self._tree[half : half + self.lanes * self.rows]
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where `get_state` was called."""
        self.head, self.filled, self._most = state["head"], state["filled"], state["most"]
        self._raw()[:, : self.filled] = state["rows"]
        self.rng.bit_generator.state = state["rng"]
        if self._tree is not None:
            leaves = np.asarray(state["tree"])
            self._tree[:] = 0.0
            tree.put(self._tree, np.arange(len(leaves)), leaves)
