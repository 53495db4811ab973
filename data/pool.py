"""Shards are read in processes side by side, which report progress and end with their parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from data.errors import UserError
from data.source import Shard, ShardResult, ingest_shard

LOOK_S = 0.25
"""How often the processes' progress is looked at."""
Show = Callable[[int], None]
"""Called with the number of bytes of the files on disk that have been read in all."""

Work = Callable[[Any, Show], Any]
"""Does one item; its second argument counts the bytes that were read."""

_read: Any = None
"""A process's view of the number of bytes that all have read."""


def read_shards(shards: list[Shard], jobs: int, show: Show) -> list[ShardResult]:
    """Read all shards; see `spread`."""
    return spread(ingest_shard, shards, jobs, show)


def spread(work: Work, items: Sequence[Any], jobs: int, show: Show) -> list[Any]:
    """``[work(item, count) for item in items]`` in processes side by side.

    Parameters
    ----------
    work : callable
        A function of a module; ``count`` is to be called with each further number of bytes read.
    items : sequence
        Each is one process's work at a time.
    jobs : int
        Processes; with 1, or one shard, this one does the work.
    show : callable
        Progress.

    Returns
    -------
    list
        Results in the order of the items.

    Raises
    ------
    UserError
        When a log can't be read, or the system killed a process.
    OSError
        When a result can't be written.
    """
    jobs = min(jobs, len(items))
    if jobs > 1:
        return _side_by_side(work, items, jobs, show)
    total = 0

    def count(more: int) -> None:
        nonlocal total
        total += more
        show(total)

    return [work(item, count) for item in items]


def _side_by_side(work: Work, items: Sequence[Any], jobs: int, show: Show) -> list[Any]:
    # Spawned rather than forked: threads of the parent's libraries don't survive a fork.
    context = get_context("spawn")
    read = context.Value("q", 0)
    ours, theirs = context.Pipe(duplex=False)
    # An interrupt of the terminal goes to all processes; only the parent shall answer it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with ProcessPoolExecutor(jobs, context, _begin, (read, ours)) as pool:
        try:
            futures = [pool.submit(_work, work, item) for item in items]
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, LOOK_S, FIRST_COMPLETED)
                show(read.value)
                for future in done:
                    future.result()
        except BrokenProcessPool:
            raise UserError(
                "a process that read logs was killed, for want of memory perhaps: try --jobs 1"
            ) from None
        except BaseException:
            # Nobody is left who would read what a process still does.
            theirs.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return [future.result() for future in futures]


def _begin(read: Any, end: Connection) -> None:
    global _read
    _read = read
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """End this process when the parent has closed its end of the pipe, or is gone."""
    try:
        parent.recv()
    except (EOFError, OSError):
        os._exit(1)


def _work(work: Work, item: Any) -> Any:
    def count(more: int) -> None:
        with _read.get_lock():
            _read.value += more

    return work(item, count)
