"""An ingestion finds its logs here: files, directories of any depth, pipes, standard input."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn

from data.errors import UserError
from data.given import PIPE_BYTES, open_pipe
from data.labels import LABELS_FILE
from data.names import printable
from data.place import reason

Source = tuple[str, Path]
"""Name of a log as it stands in the tables, and its path."""
NOT_LOGS = (LABELS_FILE, "campaign.jsonl")
"""What the lab writes beside its logs: labels, and its own account of every run."""
STANDARD_INPUT = Path("-")


def find_sources(paths: list[Path]) -> tuple[list[Source], list[Path]]:
    """List the logs under the given paths.

    Parameters
    ----------
    paths : list of Path
        Files, pipes, ``-`` for standard input, and directories (searched to any depth; hidden
        files, and what isn't a file, are left out).

    Returns
    -------
    sources : list of (str, Path)
        Name (`printable`, relative to the directory, or the file's own) and path, sorted by name.
    labels : list of Path
        The ``labels.csv`` files found, which aren't logs.

    Raises
    ------
    UserError
        When a path doesn't exist, is a device, cannot be listed or holds no file.
    """
    found: dict[Path, str] = {}
    labels: list[Path] = []
    for path in paths:
        if path == STANDARD_INPUT:
            _check_standard_input()
            found.setdefault(path, "stdin")
        elif path.is_dir():
            inside = _inside(path)
            labels += [file for file in inside if file.name == LABELS_FILE]
            logs = [file for file in inside if file.name not in NOT_LOGS]
            for file in logs:
                found.setdefault(file, printable(file.relative_to(path).as_posix()))
        else:
            try:
                _check_kind(str(path), path.stat().st_mode)
            except OSError as error:
                raise UserError(
                    f"{path}: {reason(error)}: give a log or a directory of logs"
                ) from None
            found.setdefault(path, printable(path.name))
    if not found:
        raise UserError(f"{', '.join(map(str, paths))}: no log files in there")
    taken = Counter(found.values())
    sources = [
        (name if taken[name] == 1 else printable(path.as_posix()), path)
        for path, name in found.items()
    ]
    return sorted(sources), labels


def _inside(directory: Path) -> list[Path]:
    """All files below a directory that aren't hidden, sorted."""

    def refuse(error: OSError) -> NoReturn:
        raise UserError(
            f"{error.filename}: {reason(error)}: make it readable or leave it out"
        ) from None

    files = []
    for root, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(root, name) for name in names if not name.startswith(".")]
    return sorted(file for file in files if file.is_file())


def _check_kind(name: str, mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a terminal or a device"
        raise UserError(f"{name}: is {kind}, not a log: give a file, a pipe or a directory")


def _check_standard_input() -> None:
    if sys.stdin is None:
        raise UserError("-: standard input is closed: pipe a log into it")
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a terminal or a device"
        raise UserError(f"-: standard input is {kind}: pipe a log into it")


def check_outside(out: Path, paths: list[Path], what: str = "logs") -> None:
    """Refuse an output inside the directories that are read: the next run would read it.

    Parameters
    ----------
    out : Path
        The file or directory to write.
    paths : list of Path
        What is read; a file of them is no concern here.
    what : str
        What lies in the directories, for the message.

    Raises
    ------
    UserError
        Naming both.
    """
    target = out.resolve()
    for path in paths:
        if path.is_dir() and target.is_relative_to(path.resolve()):
            raise UserError(
                f"{out}: lies inside {path}, where the {what} are: choose an --out outside of it"
            )


def is_stream(path: Path) -> bool:
    """Whether a source can be read only once: a pipe, or standard input."""
    return path == STANDARD_INPUT or stat.S_ISFIFO(path.stat().st_mode)


def copy_stream(path: Path, copy: Path) -> None:
    """Copy a pipe or standard input to a file: readers look at a log's beginning twice.

    Parameters
    ----------
    path : Path
        A pipe, or ``-``.
    copy : Path
        The file to write.

    Raises
    ------
    UserError
        When nobody writes to a pipe.
    """
    if path == STANDARD_INPUT:
        handle, piece = os.dup(sys.stdin.fileno()), b""
    else:
        handle, piece = open_pipe(path)
    with os.fdopen(handle, "rb", buffering=0) as stream, copy.open("wb") as file:
        file.write(piece)
        while piece := stream.read(PIPE_BYTES):
            file.write(piece)
