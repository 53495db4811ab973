"""Reads a directory of unknown origin: plain files of its own, and no more of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from data.errors import one_line

MAX_FILE_BYTES = 64 << 20
MAX_ENTRIES = 256


class Broken(Exception):
    """The bundle isn't intact: its files aren't what its manifest says."""


def read_plain(path: Path, most: int = MAX_FILE_BYTES) -> bytes:
    """Content of a plain file; a link, a pipe, a device or a directory is never opened.

    Raises
    ------
    FileNotFoundError
        When nothing is there.
    Broken
        When it is something else than a plain file, larger than ``most`` bytes or unreadable.
    """
    name = one_line(path.name)
    try:
        # Without O_NONBLOCK a pipe would wait for its other end; a link ends in ELOOP.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise Broken(f"{name}: a link, where a plain file was expected: remove it") from None
        raise Broken(f"{name}: {error.strerror}: make it a readable file") from None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise Broken(f"{name}: isn't a plain file: remove it")
    with os.fdopen(handle, "rb") as file:
        if found.st_size > most:
            raise Broken(f"{name}: larger than {most >> 20} MiB: no bundle has such a file")
        return file.read(most + 1)[:most]


def entries(directory: Path) -> list[str]:
    """Names of everything in a directory, sorted; Broken if they are more than a bundle has."""
    names: list[str] = []
    with os.scandir(directory) as found:
        for entry in found:
            names.append(entry.name)
            if len(names) > MAX_ENTRIES:
                raise Broken(f"holds more than {MAX_ENTRIES} files: no bundle of cczoo")
    return sorted(names)
