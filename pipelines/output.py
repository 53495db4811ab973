"""How commands speak: JSON alone on stdout, progress on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from pathlib import Path
from typing import Any, TypeVar

from data.errors import UserError

T = TypeVar("T")


def print_json(value: Any) -> None:
    """Write one JSON document to stdout, and nothing else."""
    json.dump(value, sys.stdout, indent=2, sort_keys=False, allow_nan=False, default=str)
    sys.stdout.write("\n")


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written whole or not at all, its folder with it.

    Raises
    ------
    UserError
        Where nothing can be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: choose a place that is writable") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; see `write_file`."""
    write_file(path, lambda part: part.write_text(text, encoding="utf-8"))


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate with a progress bar on a terminal, with a line every ten seconds elsewhere.

    Parameters
    ----------
    items : iterable
        What to iterate over.
    what : str
        What is being done, for the bar's label.
    total : int, optional
        Number of items; taken from ``len(items)`` where it has one.

    Yields
    ------
    T
        The items. Everything is written to stderr.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track

        yield from track(items, description=what, total=total, console=Console(stderr=True))
        return
    start = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= 10:
            last = now
            of = f"/{total}" if total else ""
            left = f", {(now - start) / done * (total - done):.0f} s left" if total else ""
            print(f"{what}: {done}{of}{left}", file=sys.stderr)
