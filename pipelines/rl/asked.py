"""Ctrl-C and SIGTERM end a training after its round, with a checkpoint; a second time at once."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def to_stop() -> Iterator[Callable[[], bool]]:
    """Catch both signals.

    Yields
    ------
    callable
        Whether one has come.
    """
    come = threading.Event()

    def note(number: int, _: object) -> None:
        if come.is_set():
            raise KeyboardInterrupt
        come.set()
        print("\nstopping with a checkpoint (again: at once, without)", file=sys.stderr)

    if threading.current_thread() is not threading.main_thread():
        yield come.is_set
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield come.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
