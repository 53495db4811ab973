"""Independent pieces of work are spread over Ray; the arrays that they share are stored once."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from data.errors import UserError

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""``progress(items, what, total)`` yields the items and shows a person how far it is."""

SWITCHES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}
START_ATTEMPTS = 4
REACH_S = 5.0
"""Seconds within which the head of a cluster has to answer."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How HTTP/2 begins, and with it gRPC, which Ray speaks: the preface and empty settings."""
RETRIES = 3
"""Further tries of a task whose worker or node died; one that raised isn't tried again."""
AHEAD = 4
"""Tasks that are handed over per CPU before one is back: workers don't wait, memory stays flat."""


def silent(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
    """Yield the items without showing any progress."""
    return items


def set_switches() -> None:
    """Set what Ray reads once, while it is imported: call it before anything imports Ray.

    There is no usage report and no look-up of GPUs, and workers run this interpreter. Otherwise
    Ray takes a command begun by ``uv run`` for one that each worker has to begin anew, which fails
    if the packages can't be fetched.
    """
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)


def start(workers: int) -> None:
    """Join the cluster that ``RAY_ADDRESS`` names, or start one with ``workers`` CPUs here.

    Raises
    ------
    UserError
        If no cluster answers at ``RAY_ADDRESS``, or not one of this Ray and Python, or the
        machine is too busy to start one.
    """
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS", "local")
    check_address(address)
    set_switches()
    import ray

    environment = {"env_vars": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}}
    options: dict[str, Any] = {
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": environment,
    }
    if address != "local":
        try:
            ray.init(address=address, **{**options, "include_dashboard": None})
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_cluster(address, str(error).strip().splitlines()[0]) from None
        return
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            ray.init("local", num_cpus=workers, object_store_memory=200 * 1024**2, **options)
            return
        except Exception as error:
            # Ray gives its own processes 30 s to come up, too little on a machine that others
            # keep busy, and says so with a bare Exception.
            ray.shutdown()
            if "timed out" not in str(error):
                raise
            if attempt == START_ATTEMPTS:
                raise UserError(
                    "Ray's own processes don't come up within its 30 s, this machine is too busy: "
                    "try again later, or do without Ray by models.sbd.workers: 0 in the settings"
                ) from None


def check_address(address: str) -> None:
    """Refuse an address at which nothing listens, which Ray itself notices after minutes.

    Parameters
    ----------
    address : str
        ``auto``, ``local``, ``host:port`` or ``ray://host:port``.

    Raises
    ------
    UserError
        The message says what to do.
    """
    if address in ("auto", "local"):
        return
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        where = (parts.hostname or "", parts.port or 0)
    except ValueError:
        where = ("", 0)
    if not all(where):
        raise UserError(f"RAY_ADDRESS={address}: HOST:PORT expected, as in 127.0.0.1:6379")
    try:
        with socket.create_connection(where, timeout=REACH_S) as connection:
            connection.sendall(HELLO)
            # A frame's header: three bytes of length, then the type, 4 for settings.
            answer = connection.recv(9)
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from None
    if answer[3:4] != b"\x04":
        raise _no_cluster(address, "something else answers")


def _no_cluster(address: str, reason: str) -> UserError:
    return UserError(
        f"RAY_ADDRESS={address}: no Ray cluster to join there ({reason}): start one with "
        "`ray start --head`, correct RAY_ADDRESS, or unset it to work on this machine alone"
    )


def stop() -> None:
    """Leave or end the cluster, if one was joined or started."""
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
    results: list[Any] = [None] * len(items)
    for number, result in progress(stream(work, items, shared, workers), what, len(items)):
        if isinstance(result, Exception):
            raise result
        results[number] = result
    return results


def stream(
    work: Callable[..., Any], items: Iterable[Any], shared: Any, workers: int = 2
) -> Iterator[tuple[int, Any]]:
    """``work(shared, item)`` on Ray for items that may be many and large.

    Items are taken one by one as workers get free, results handed on as they come: neither are
    kept. What a worker or node that dies had in hand is done again by another.

    Parameters
    ----------
    work, shared, workers
        As for `spread`.
    items : iterable
        One task each.

    Yields
    ------
    (int, object)
        Number of the item, and its result or the exception that its task raised.
    """
    if not workers:
        for number, item in enumerate(items):
            yield number, _attempt(work, shared, item)
        return
    start(workers)
    import ray

    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
    reference = ray.put(shared)
    source = enumerate(items)
    waiting: dict[Any, int] = {}
    while True:
        # Nodes may come and go.
        there = ray.cluster_resources()  # type: ignore[no-untyped-call]
        room = AHEAD * max(1, int(there.get("CPU", workers))) - len(waiting)
        for number, item in islice(source, max(0, room)):
            waiting[remote.remote(reference, item)] = number
        if not waiting:
            return
        done, _ = ray.wait(list(waiting), num_returns=1)
        yield waiting.pop(done[0]), _attempt(ray.get, done[0])


def _attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except Exception as error:  # of the task's own: the caller decides what it costs
        return error
