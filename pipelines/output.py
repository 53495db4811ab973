"""Print results and progress: JSON alone on stdout, bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
LINE_S = 10
"""Seconds between two lines of progress if there is no terminal."""
PACE_S = 60
"""Seconds over which the pace is taken to estimate the time left."""


def print_json(value: Any) -> None:
    """Write one JSON document to stdout, and nothing else."""
    json.dump(value, sys.stdout, indent=2, sort_keys=False, allow_nan=False, default=str)
    sys.stdout.write("\n")


def size(count: int) -> str:
    """A number of bytes for people: ``512 bytes``, ``3.4 MB``, ``10.0 GB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


class _Pace:
    """An estimate of the time left by the pace of the last minute, printed now and then.

    Parameters
    ----------
    what : str
        Name of the work, for the printed line.
    """

    def __init__(self, what: str) -> None:
        self._what, self._last = what, time.monotonic()
        self._seen: deque[tuple[float, float]] = deque()

    def left_s(self, now: float, done: float, total: float) -> float | None:
        """Seconds left, or None before a pace is known; ``done`` counts from 0 to ``total``."""
        if done > 0:  # what comes before the first piece is preparation
            self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] < now - PACE_S:
            self._seen.popleft()
        if not self._seen:
            return None
        (then, before) = self._seen[0]
        return (now - then) * (total - done) / (done - before) if done > before else None

    def report(self, done: int, total: int | None, so_far: str) -> None:
        """Print how far the work is, if the last line was printed `LINE_S` ago or earlier."""
        now = time.monotonic()
        left = self.left_s(now, done, total) if total else None
        if now - self._last >= LINE_S:
            self._last = now
            tail = "" if left is None else f", {left:.0f} s left"
            print(f"{self._what}: {so_far}{tail}", file=sys.stderr)


@contextmanager
def progress_bytes(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how much of some files was read: a bar on a terminal, elsewhere a line now and then.

    Parameters
    ----------
    what : str
        Name of the work.
    total : int
        Bytes in all.

    Yields
    ------
    callable
        Takes the number of bytes read so far. Everything is written to stderr.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bars:
            bar = bars.add_task(what, total=total)
            yield lambda done: bars.update(bar, completed=done)
        return
    pace, noted = _Pace(what), 0.0

    def show(done: int) -> None:
        nonlocal noted
        if time.monotonic() - noted >= 1:
            noted = time.monotonic()
            pace.report(done, total, f"{size(done)} of {size(total)}")

    yield show


def progress(
    items: Iterable[T],
    what: str,
    total: int | None = None,
    weigh: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """Iterate with a progress bar on a terminal, with a line every ten seconds elsewhere.

    Parameters
    ----------
    items : iterable
        Items to iterate over.
    what : str
        Name of the work, for the bar's label.
    total : int, optional
        Number of items, or the sum of their weights; taken from ``len(items)`` if it has one.
    weigh : callable, optional
        Weight of an item, if some are more work than others; 1 by default.

    Yields
    ------
    T
        The items. Everything is written to stderr.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bars:
            bar = bars.add_task(what, total=total)
            for item in items:
                yield item
                bars.advance(bar, weigh(item))
        return
    pace, done = _Pace(what), 0
    for item in items:
        yield item
        done += weigh(item)
        pace.report(done, total, f"{done}/{total}" if total else f"{done}")
