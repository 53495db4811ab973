"""Small text files that a user names are read here: whole, bounded, without endless waiting."""

from __future__ import annotations

import codecs
import os
import select
import stat
import time
from pathlib import Path

from data.errors import UserError
from data.place import reason

WRITER_PATIENCE_S = 5.0
"""How long to wait for somebody to open a pipe for writing."""
PIPE_BYTES = 1 << 20
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""A text's first bytes and its encoding; that of UTF-16 begins one of UTF-32, which goes first."""


def open_pipe(path: Path) -> tuple[int, bytes]:
    """Open a pipe and read its beginning; never wait for ever for somebody to open it.

    A pipe that nobody has opened for writing reads as ended, though no hang-up is reported; one
    that is open and empty refuses to be read now.

    Returns
    -------
    handle : int
        To read the rest from.
    piece : bytes
        The beginning, maybe empty.

    Raises
    ------
    UserError
        When nobody writes to it.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    until = time.monotonic() + WRITER_PATIENCE_S
    piece = b""
    while not poll.poll(100):
        try:
            piece = os.read(handle, PIPE_BYTES)
        except BlockingIOError:
            break
        if piece:
            break
        if time.monotonic() > until:
            os.close(handle)
            raise UserError(
                f"{path}: a pipe that nobody writes to: start its writer, or give a file"
            )
    os.set_blocking(handle, True)
    return handle, piece


def read_text(path: Path, what: str, language: str, most: int) -> str:
    """Read a text in UTF-8, or in what its byte order mark says.

    Parameters
    ----------
    path : Path
        A file or a pipe.
    what, language : str
        What it should be, for the messages: "labels file", "a CSV".
    most : int
        Bytes that it may have.

    Returns
    -------
    str
        The text without the mark; its line ends are as they stand.

    Raises
    ------
    UserError
        When it is no file, can't be read, is too large or isn't text.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise UserError(f"{path}: not a file: give a readable {what}")
        handle, piece = open_pipe(path) if stat.S_ISFIFO(mode) else (os.open(path, 0), b"")
        with os.fdopen(handle, "rb") as file:
            content = bytearray(piece)
            while len(content) <= most and (piece := file.read(PIPE_BYTES)):
                content += piece
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}: give a readable {what}") from None
    if len(content) > most:
        raise UserError(f"{path}: too large: a {what} has {most >> 20} MiB at most")
    mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
    encoding = MARKS.get(mark, "utf-8")
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not {language} in {encoding.upper()}: byte {error.start}: save it as UTF-8"
        ) from None
