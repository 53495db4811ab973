"""A directory that a command makes is filled beside its place, then put there whole.

What a directory holds already is replaced only if the command's own record in it lists the file;
anything else is somebody's work and is refused by its name. The directory that is being filled is
called ``.NAME.PID.XXXXXXXX.part`` and is locked by its process. The kernel gives the lock up with
the process, whatever ended it, so that the next run finds what a killed one has left. Temporary
folders to work in are named and locked in the same way.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from data.errors import UserError

Own = Callable[[Path], Collection[str]]
"""Names (relative, with /; a folder's ends in one) that a directory's own record lists, if any."""
AT_FDCWD = -100
RENAME_EXCHANGE = 2
SHOWN = 3
"""How many foreign names a message lists."""


def reason(error: OSError) -> str:
    """Why the system refused, in words: libraries put longer texts of their own there."""
    return os.strerror(error.errno).lower() if error.errno else str(error) or "cannot be used"


def unwritable(path: Path, error: OSError) -> UserError:
    """The one line about an output that cannot be written."""
    return UserError(f"{path}: {reason(error)}: free some space or choose another place to write")


def check_writable(path: Path) -> None:
    """Refuse a place to write before any work is done for it.

    A file that is there is replaced by another of its name, so that its own mode doesn't matter:
    DVC takes away the right to write from what it keeps.

    Parameters
    ----------
    path : Path
        File or directory to be made; its folders may be missing.

    Raises
    ------
    UserError
        If the nearest folder that exists is none, or isn't writable.
    """
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError:
        raise UserError(f"{path}: not a name in UTF-8: choose another place to write") from None
    folder = path.resolve()
    while not os.path.lexists(folder):
        folder = folder.parent
    if folder != path.resolve() and not folder.is_dir():
        raise UserError(f"{path}: {folder} is a file, not a folder: choose another place to write")
    if not folder.is_dir():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        raise UserError(f"{path}: {folder} is not writable: choose another place to write")


def check_other(out: Path | None, option: str, given: Path, of: str) -> None:
    """Refuse to write to the file that is read, by whatever name.

    Parameters
    ----------
    out : Path or None
        The file to write, if any.
    option, of : str
        The options that name the two, for the message.
    given : Path
        The file that is read.

    Raises
    ------
    UserError
        If both are one file.
    """
    if out is None:
        return
    same = out.exists() and given.exists() and out.samefile(given)
    if same or out.resolve() == given.resolve():
        raise UserError(f"{option} {out}: is the file of {of}: choose another place to write")
    if out.is_dir():
        raise UserError(f"{option} {out}: is a directory: give a file name")


def check_own(directory: Path, own: Own, maker: str) -> None:
    """Refuse to replace a directory that holds anything but what its record lists.

    Parameters
    ----------
    directory : Path
        The directory to replace; it may be missing or empty.
    own : callable
        Gives the names that the directory's record lists.
    maker : str
        The command, for the message: "cczoo ingest".

    Raises
    ------
    UserError
        Naming what is foreign.
    """
    if not directory.is_dir():
        if os.path.lexists(directory):
            raise UserError(f"{directory}: is a file: give a directory to make")
        return
    foreign = _foreign(directory, frozenset(own(directory)))
    if foreign:
        more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
        raise UserError(
            f"{directory}: holds {', '.join(foreign[:SHOWN])}{more}, which {maker} didn't write, "
            "or not as it is now: choose another --out"
        )


def everything(directory: Path) -> set[str]:
    """Names of all that a directory holds, for a cache or a result that can be made again."""
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def _foreign(directory: Path, own: frozenset[str]) -> list[str]:
    """Files that aren't in ``own``, and folders without any that are."""
    folders = {parent.as_posix() for name in own for parent in Path(name, "*").parents}
    found = []
    for root, inner, files in os.walk(directory):
        here = Path(root).relative_to(directory)
        for name in list(inner):
            # A link to a folder is walked past, and is nothing that a command makes.
            if (here / name).as_posix() not in folders or Path(root, name).is_symlink():
                found.append(f"{(here / name).as_posix()}/")
                inner.remove(name)
        found += [path for name in files if (path := (here / name).as_posix()) not in own]
    return sorted(found)


@contextmanager
def building(directory: Path, own: Own, maker: str) -> Iterator[Path]:
    """Give an empty directory to fill, and put it in place of ``directory`` when all is done.

    Parameters
    ----------
    directory : Path
        The directory to make, or to replace if its record lists all that it holds.
    own, maker
        As for `check_own`.

    Yields
    ------
    Path
        Where to write. When the block is left by an exception, ``directory`` stays as it was.

    Raises
    ------
    UserError
        When ``directory`` holds something foreign, or the system refuses to write.
    """
    check_writable(directory)
    check_own(directory, own, maker)
    target = directory.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        with _held(target) as held:
            fresh = held / "new"
            fresh.mkdir()
            yield fresh
            # Something may have been put there since the beginning.
            check_own(directory, own, maker)
            _put(fresh, target)
    except OSError as error:
        raise unwritable(directory, error) from None


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Give an empty folder to work in, which no other user can enter, and remove it at the end.

    What killed processes have left of the same name is removed first.

    Parameters
    ----------
    name : str
        What it is for: a part of the folder's name.

    Yields
    ------
    Path
        Among the system's temporary folders.
    """
    target = Path(tempfile.gettempdir(), f"cczoo-{name}")
    sweep(target)
    with _held(target) as held:
        yield held


@contextmanager
def _held(target: Path) -> Iterator[Path]:
    """A locked directory beside ``target``, removed at the end, whatever its rights are by then."""
    named = {"prefix": f".{target.name}.{os.getpid()}.", "suffix": ".part"}
    while True:
        # Another process may take it away between its making and the lock.
        with tempfile.TemporaryDirectory(
            dir=target.parent, **named, ignore_cleanup_errors=True
        ) as held:
            if (lock := _lock(Path(held))) is None:
                continue
            try:
                yield Path(held)
            finally:
                os.close(lock)
            return


def _lock(path: Path) -> int | None:
    """Lock a file or directory; None when another process has it, or took it away."""
    try:
        # Anybody may have put a pipe there, in a folder of all users: it isn't waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    os.close(handle)
    return None


def sweep(target: Path) -> None:
    """Remove what killed processes have left of ``target``; what a living one writes stays.

    Parameters
    ----------
    target : Path
        File or directory whose parts (``.NAME.PID.part``, ``.NAME.PID.XXXXXXXX.part``) lie beside
        it.
    """
    part = re.compile(rf"\.{re.escape(target.name)}\.\d+(\.[a-z0-9_]{{8}})?\.part")
    for name in os.listdir(target.parent):
        path = target.parent / name
        if not part.fullmatch(name) or (lock := _lock(path)) is None:
            continue
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        os.close(lock)


def _put(fresh: Path, target: Path) -> None:
    """Let ``fresh`` take the place of ``target``, at once if the file system can exchange."""
    if not target.exists():
        fresh.rename(target)
    elif not _exchange(fresh, target):
        old = fresh.with_name("old")
        target.rename(old)
        try:
            fresh.rename(target)
        except BaseException:
            old.rename(target)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names; False if this kernel or file system cannot."""
    try:
        swap = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(swap(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0)


@contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """Give a name to write a file under, and rename it to ``path`` when all is done.

    Parameters
    ----------
    path : Path
        The file to make or replace; its folders are made.

    Yields
    ------
    Path
        The temporary name. When the block is left by an exception, it is removed.

    Raises
    ------
    UserError
        When the system refuses to write.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path)
        with part.open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield part
            part.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        part.unlink(missing_ok=True)
