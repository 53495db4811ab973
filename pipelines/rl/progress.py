"""Show how far a training is: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from models.rl.training import Progress
from pipelines.output import LINE_S


def line(progress: Progress) -> str:
    """Return, speed and time left, in words."""
    mean = "no episode yet" if progress.returns is None else f"return {progress.returns:.4g}"
    if "reward" in progress.point:
        mean += f" ({progress.point['reward']:.4g} a step)"
    left = timedelta(seconds=round(progress.left_s))
    return f"{mean}, {progress.steps_per_s:.0f} steps/s, {left} left"


@contextmanager
def shown(what: str) -> Iterator[Callable[[Progress], None]]:
    """Show progress on stderr.

    Parameters
    ----------
    what : str
        Name of the training.

    Yields
    ------
    callable
        Takes each `Progress`.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"))
        with Bars(*columns, console=Console(stderr=True)) as bars:
            bar = bars.add_task(what, total=None, now="")
            yield lambda one: bars.update(bar, completed=one.steps, total=one.total, now=line(one))
        return
    last = time.monotonic()

    def show(one: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_S or one.steps >= one.total:
            last = time.monotonic()
            print(f"{what}: {one.steps}/{one.total} steps, {line(one)}", file=sys.stderr)

    yield show
