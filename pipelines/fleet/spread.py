"""Work on a store is spread over a cluster if ``RAY_ADDRESS`` names one, else over processes."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from data import pool
from data.errors import UserError
from data.pool import Show, Work

BLOCKS = 64
"""Tasks for each CPU of a cluster at the most; if there are more items, each has several."""


def spread_over(jobs: int | None) -> Any:
    """A function ``spread(work, items, show)``; see `data.fleet.ingest.Spread`.

    Parameters
    ----------
    jobs : int or None
        Processes on this machine; the number of cores by default. A cluster has its own.
    """
    count = jobs or len(os.sched_getaffinity(0))

    def spread(work: Work, items: Sequence[Any], show: Show) -> list[Any]:
        if os.environ.get("RAY_ADDRESS") and len(items) > 1:
            # What Ray tells of workers that died goes to the standard output, which is ours.
            with contextlib.redirect_stdout(sys.stderr):
                return _on_cluster(work, items, show)
        return pool.spread(work, items, count, show)

    return spread


def _on_cluster(work: Work, items: Sequence[Any], show: Show) -> list[Any]:
    """Results in the order of the items, each done by a task of Ray Data on any node.

    Whatever a worker or node that dies had in hand is done again by another. Results are small:
    what a task makes of logs goes to the store, and its names come back.
    """
    from models import parallel

    parallel.start(1)
    import ray

    # Its own messages are for those who write such pipelines; what went wrong is raised.
    for name in ("ray.data._internal", "ray.data.exceptions"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    there = ray.cluster_resources()  # type: ignore[no-untyped-call]
    blocks = BLOCKS * max(1, int(there.get("CPU", 1)))
    numbered = [{"number": number, "item": pickle.dumps(item)} for number, item in enumerate(items)]
    found: dict[int, Any] = {}
    done = 0
    try:
        rows = ray.data.from_items(numbered, override_num_blocks=min(len(numbered), blocks))
        # Ray Data itself would try again without end what the system kills each time.
        with warnings.catch_warnings():
            # It tells that this way to say so will be another one in its next versions.
            warnings.simplefilter("ignore", DeprecationWarning)
            step = rows.map(Step(work), num_cpus=1, max_retries=parallel.RETRIES)
        for row in step.iter_rows():
            if row["mistake"]:
                raise UserError(row["mistake"])
            found[row["number"]] = pickle.loads(row["result"])
            done += int(row["bytes"])
            show(done)
    except ray.exceptions.RayError as error:
        if isinstance(error, ray.exceptions.WorkerCrashedError | ray.exceptions.OutOfMemoryError):
            raise UserError(
                f"{parallel.RETRIES + 1} processes of the cluster were killed at the same logs, "
                "for want of memory perhaps: look into Ray's own logs"
            ) from None
        raise
    return [found[number] for number in range(len(items))]


class Step:
    """One item's work, as Ray Data asks for it: a row in, a row out."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Do the work of the row's item."""
        read = 0

        def count(more: int) -> None:
            nonlocal read
            read += more

        found = {"number": row["number"], "result": b"", "mistake": ""}
        try:
            found["result"] = pickle.dumps(self._work(pickle.loads(row["item"]), count))
        except UserError as error:
            found["mistake"] = str(error)  # raised here, it would come back as a text of Ray's
        return found | {"bytes": read}
