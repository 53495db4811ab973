"""Write files whole or not at all, and hash them for comparison."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from data.place import part_of


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written whole or not at all, its folder with it.

    Raises
    ------
    UserError
        If nothing can be written.
    """
    with part_of(path) as part:
        try:
            write(part)
        except Exception as error:
            number = _refusal(error, path.parent)
            if number is None:
                raise
            raise OSError(number, str(error)) from None


def _refusal(error: Exception, folder: Path) -> int | None:
    """The system's error number behind an error of polars, which names it in its text if at all."""
    if found := re.search(r"\(os error (\d+)\)", str(error)):
        return int(found[1])
    if type(error).__name__ != "ComputeError":  # by its name: polars is slow to import
        return None
    return errno.ENOSPC if os.statvfs(folder).f_bavail == 0 else errno.EIO


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; see `write_file`."""
    write_file(path, lambda part: part.write_text(text, encoding="utf-8"))


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
