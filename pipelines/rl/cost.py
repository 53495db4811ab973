"""Keeps beside a training's checkpoint what it took and what it was made with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from data.files import file_hash
from data.results import Result, ResultFile
from models.rl import checkpoint
from models.rl.training import Progress
from pipelines import tracking

ROOT = Path(__file__).parents[2]
EVERY_S = 20.0
"""Seconds from one writing to the next: what is lost when a training is killed."""


class Cost(Result):
    """What a training took so far.

    Attributes
    ----------
    command : str
        The one that began it.
    commit : str
        The checkout's then; ``-dirty`` if tracked files differed.
    lock : str
        SHA-256 of ``uv.lock``; ``unknown`` outside of a checkout.
    cpu : str
        Name and architecture of the processor.
    cpu_s : float
        Processor time of this process and all its threads over all its runs, those that were
        killed included; that of Ray's runners isn't in it.
    wall_s : float
        Time of the clock.
    runs : int
        Processes one after the other: 1 if it was never gone on with.
    """

    command: str
    commit: str
    lock: str
    cpu: str
    cpu_s: float
    wall_s: float
    runs: int


COST = ResultFile("cost.json", Cost, "cczoo train NAME")


@contextmanager
def counted(folder: Path) -> Iterator[Callable[[Progress], None]]:
    """Count what a training takes, on top of what it took before it was gone on with.

    Parameters
    ----------
    folder : Path
        Its own.

    Yields
    ------
    callable
        Takes each `Progress`, and writes now and then and at the end.
    """
    before = _before(folder)
    cpu_s, wall_s = time.process_time(), time.monotonic()
    last = wall_s

    def count(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY_S and progress.steps < progress.total:
            return
        last = now
        took = {
            "cpu_s": round(before.cpu_s + time.process_time() - cpu_s, 2),
            "wall_s": round(before.wall_s + now - wall_s, 2),
            "runs": before.runs + 1,
        }
        COST.write(folder, before.model_copy(update=took))

    yield count


def _before(folder: Path) -> Cost:
    """What the training took until now; nothing, with what is run now, if it begins."""
    if checkpoint.latest(folder) is not None and (folder / COST.name).is_file():
        return COST.read(folder)
    return Cost(
        command=tracking.command_line(),
        commit=tracking.git_commit(),
        lock=locked(),
        cpu=processor(),
        cpu_s=0.0,
        wall_s=0.0,
        runs=0,
    )


def locked() -> str:
    """SHA-256 of the lock of all packages."""
    path = ROOT / "uv.lock"
    return file_hash(path) if path.is_file() else "unknown"


def processor() -> str:
    """Name and architecture of this machine's processor."""
    from export.bundle.certificate import machine

    found = machine()
    return f"{found['cpu']}, {found['machine']}"
