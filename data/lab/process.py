"""Processes of a lab are started here so that none outlives the one that began it."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
from collections.abc import Iterator
from typing import Any

READY_S = 60.0
"""What isn't ready by then hangs: a busy machine takes some seconds to begin a process."""


class LabError(RuntimeError):
    """A part of the lab failed: the run is worth another try, not the user's mistake."""


def spawn(command: list[str], end_signal: str = "KILL", **options: Any) -> subprocess.Popen[str]:
    """Start a child in a process group of its own, ended by the kernel when this process is gone.

    Parameters
    ----------
    command : list of str
    end_signal : str
        What the kernel sends it then.
    **options
        Further arguments of `subprocess.Popen`.
    """
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", end_signal, "--", *command],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        **options,
    )


def _await_line(process: subprocess.Popen[str], what: str, timeout_s: float) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            raise LabError(f"{what}: no answer within {timeout_s:.0f} s")
    line = process.stdout.readline().strip()
    if not line:
        assert process.stderr is not None
        process.wait(timeout=5)
        reason = " ".join(process.stderr.read().split())[-300:]
        raise LabError(f"{what} ended early ({process.returncode}): {reason or 'no message'}")
    return line


def stop(process: subprocess.Popen[str], timeout_s: float = 5.0) -> None:
    """Tell a child to end, and end it if it doesn't in time."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
        process.communicate(timeout=timeout_s)


@contextlib.contextmanager
def running(
    command: list[str], what: str, end_signal: str = "KILL", ready_s: float = READY_S
) -> Iterator[subprocess.Popen[str]]:
    """Have a child run beside the block, from its "ready" on, for which it has ``ready_s``.

    Raises
    ------
    LabError
        When it doesn't get ready; the message says ``what`` it is.
    """
    process = spawn(command, end_signal)
    try:
        if (line := _await_line(process, what, ready_s)) != "ready":
            raise LabError(f"{what}: expected 'ready', got {line!r}")
        yield process
    finally:
        stop(process)
