"""Runs carried out side by side in numbered labs, recorded line by line, and gone on with later.

A campaign of the lab (`data.lab.schedule`) and runs with an exported model (`cczoo lab live`)
differ in which runs are due and in what is kept of them; how they are carried out is here.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

HOST_RETRIES = 3
"""How often a run that the host has spoilt is done again."""
STAGGER_S = 0.7
"""Least time between two starts: setting up a lab takes more CPU time than running one."""
WATCH_S = 1.0

Run = TypeVar("Run")
Result = TypeVar("Result")


class Work(Protocol[Run, Result]):
    """The runs that `carry_out` carries out; all but `do` is called in the caller's thread."""

    def watch(self) -> int:
        """How many runs may be under way now; called about once a second."""

    def next_run(self) -> Run | None:
        """The next run that is due, or None if there is none at present."""

    def do(self, run: Run, slot: int) -> Result:
        """Carry out one run in the lab of this number; called in a thread of its own."""

    def finish(self, run: Run, result: Result) -> None:
        """Record a result; a run that has to be done again is due again from now on."""

    def interrupted(self) -> None:
        """Called when a person has interrupted the runs, before those under way are waited for."""


def carry_out(work: Work[Run, Result], slots: Iterable[int]) -> int:
    """Carry out all runs that are due.

    After an error or an interruption no run is begun; those under way end and are recorded.

    Parameters
    ----------
    work : Work
        The runs.
    slots : iterable of int
        Numbers of the labs; see `data.lab.topology`.

    Returns
    -------
    int
        How many runs were begun.
    """
    free = deque(slots)
    busy: dict[Future[Result], tuple[Run, int]] = {}
    begun = 0
    with ThreadPoolExecutor(len(free)) as pool:
        try:
            while True:
                run = work.next_run() if len(busy) < work.watch() else None
                if run is not None:
                    slot = free.popleft()
                    busy[pool.submit(work.do, run, slot)] = (run, slot)
                    begun += 1
                    time.sleep(STAGGER_S)
                elif not busy:
                    return begun
                done, _ = wait(busy, 0 if run is not None else WATCH_S, FIRST_COMPLETED)
                for future in done:
                    finished, slot = busy.pop(future)
                    free.append(slot)
                    work.finish(finished, future.result())
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                work.interrupted()
            for future, (running, _) in busy.items():
                with suppress(Exception):
                    work.finish(running, future.result())
            raise


def append(log: Path, record: dict[str, Any]) -> None:
    """Write a record as the last line of a log."""
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, separators=(",", ":")) + "\n")


def resume(log: Path) -> list[dict[str, Any]]:
    """Read a log's records, in order; there are none if there is no file.

    The unfinished last line of a killed run is cut off, or the next one would be lost with it.
    """
    if not log.exists():
        return []
    text = log.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(log, len(whole))
    records = []
    for line in whole.splitlines():
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line))
    return records
