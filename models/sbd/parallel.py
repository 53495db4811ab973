"""Independent pieces of work spread over Ray, the shared arrays stored once."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""``progress(items, what, total)`` yields the items and tells a person how far it is."""


START_ATTEMPTS = 4


def silent(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
    """Yield the items and tell nobody."""
    return items


def start(workers: int) -> None:
    """Join the cluster that ``RAY_ADDRESS`` names, or start one with ``workers`` CPUs here."""
    # Ray's own switches have to stand before it is imported: no usage report, no GPU look-up,
    # and workers run this interpreter, not `uv run` anew.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    import ray

    if ray.is_initialized():
        return
    environment = {"env_vars": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}}
    options: dict[str, Any] = {
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": environment,
    }
    if "RAY_ADDRESS" in os.environ:
        ray.init(address=os.environ["RAY_ADDRESS"], **{**options, "include_dashboard": None})
        return
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            ray.init("local", num_cpus=workers, object_store_memory=200 * 1024**2, **options)
            return
        except Exception as error:
            # Ray gives its own processes 30 s to come up, too little on a machine that others
            # keep busy, and says so with a bare Exception.
            ray.shutdown()
            if attempt == START_ATTEMPTS or "timed out" not in str(error):
                raise


def stop() -> None:
    """Leave or end the cluster, where one was joined or started."""
    if "ray" in sys.modules:
        import ray

        ray.shutdown()


def spread(
    work: Callable[..., Any],
    items: Sequence[Any],
    shared: Any,
    what: str,
    workers: int = 2,
    progress: Progress = silent,
) -> list[Any]:
    """``[work(shared, item) for item in items]``, on Ray.

    Parameters
    ----------
    work : callable
        A function of an importable module.
    items : sequence
        One task each; put long ones first.
    shared : object
        Sent to the object store once.
    what : str
        For the progress line.
    workers : int
        CPUs of a cluster that is started here; 0 does without Ray, in this process, for tests
        and debuggers.
    progress : callable
        See `Progress`.

    Returns
    -------
    list
        Results in the order of ``items``.
    """
    if not workers:
        return [work(shared, item) for item in progress(items, what, len(items))]
    import ray

    start(workers)
    remote = ray.remote(num_cpus=1, max_retries=1)(work)
    reference = ray.put(shared)
    waiting = {remote.remote(reference, item): i for i, item in enumerate(items)}
    results: list[Any] = [None] * len(items)

    def finished() -> Iterator[Any]:
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            results[waiting.pop(done[0])] = ray.get(done[0])
            yield done[0]

    for _ in progress(finished(), what, len(items)):
        pass
    return results
