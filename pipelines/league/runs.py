"""Do the league's runs in processes side by side, and keep each as soon as it is finished."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from pipelines.league import players
from pipelines.league.draw import Drawn
from pipelines.output import progress
from pipelines.studies.papers.runs import Kept, Run, Task, flat


@dataclass(frozen=True)
class Job:
    """A player in a scenario."""

    player: players.Entrant
    drawn: Drawn

    @property
    def cc(self) -> str:
        """The player's name."""
        return self.player.name

    def key(self) -> str:
        """Hash of all that its result depends on."""
        one = self.drawn
        task = Task(one.name, one.family, self.cc, one.seed, one.spec)
        return hashlib.sha256(f"{task.key()}{players.identity(self.player)}".encode()).hexdigest()


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def play_all(jobs: Sequence[Job], processes: int, work: Path) -> dict[tuple[str, str], Run]:
    """Metrics of all jobs: those that are kept, or of runs made now.

    Parameters
    ----------
    jobs : sequence of Job
    processes : int
        1 plays in this process.
    work : Path
        Folder where finished runs are kept.

    Returns
    -------
    dict
        (scenario, player) -> metrics of `data.netsim.metrics.UNITS`, ``flows.NAME`` and ``cpu_s``.
    """
    results: dict[tuple[str, str], Run] = {}
    with Kept(work) as kept:
        missing = {}
        for job in jobs:
            key = job.key()
            if (run := kept.found(key)) is None:
                missing[key] = job
            else:
                results[job.drawn.name, job.cc] = run
        for key, run in progress(_played(missing, processes), "league", len(missing)):
            job = missing[key]
            results[job.drawn.name, job.cc] = kept.keep(key, run)
    return results


def _played(jobs: Mapping[str, Job], processes: int) -> Iterator[tuple[str, Run]]:
    """Results by the keys of their jobs as they come, in no order."""
    if processes == 1 or len(jobs) < 2:
        yield from ((key, play(job)) for key, job in jobs.items())
        return
    # Fresh processes: a fork of one that has threads may stand still.
    context = multiprocessing.get_context("spawn")
    count = min(processes, len(jobs))
    with ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            running = {pool.submit(play, job): key for key, job in jobs.items()}
            for done in as_completed(running):
                yield running.pop(done), done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def play(job: Job) -> Run:
    """One run, with what it took of the processor."""
    begun = time.process_time()
    run = flat(players.play(job.player, job.drawn.spec, job.drawn.seed))
    return {**run, "cpu_s": round(time.process_time() - begun, 4)}


def _end_with_parent() -> None:
    """End when the process that wants the results was killed: nobody else would tell."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
