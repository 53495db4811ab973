"""Read a file of any size, plain or compressed, as blocks of complete lines."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from backports import zstd
from numpy.typing import NDArray

from data.errors import UserError
from data.formats.base import MAX_LINE_BYTES, Lines
from data.place import reason

BLOCK_BYTES = 1 << 20
"""Small enough that parsed columns stay in the cache's reach, large enough to hide Python."""
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MOST_WINDOW_LOG = 28
"""How far a compressed frame may look back (logarithm to base 2 of bytes): 256 MB of memory."""
MARKS = (
    (codecs.BOM_UTF8, None),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and what has to be decoded after each; UTF-16's is a beginning of UTF-32's."""
LONGEST_MARK = 4
Watch = Callable[[int], None]
"""Called repeatedly with the number of bytes of the file on disk that have been read."""


class DamagedStream(Exception):
    """The compressed data ends early or is corrupt; what came before it was delivered."""


class Block(NamedTuple):
    """Some lines, the number of the first (from 1) and the offset of ``buffer[0]`` in the file.

    ``too_long`` marks a block of one line whose middle was left out; ``ends`` then cuts the kept
    beginning. ``unfinished`` says that the last line goes on in the next block. ``size`` counts the
    bytes of the lines, those left out too.
    """

    lines: Lines
    first_line: int
    offset: int
    size: int
    too_long: bool = False
    unfinished: bool = False


def decompressed(path: Path, watch: Watch | None = None) -> Iterator[bytes]:
    """Yield a file's content, decompressed by its magic bytes (gzip, zstd, several members too).

    Raises
    ------
    DamagedStream
        After everything that could be decompressed was yielded.
    UserError
        When the file can't be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            for block in _unpack(file, head):
                yield block
                if watch:
                    watch(file.tell())
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}: make it readable or leave it out") from None


def _unpack(file: IO[bytes], head: bytes) -> Iterator[bytes]:
    if head.startswith(GZIP_MAGIC):
        yield from _gunzip(file)
    elif head == ZSTD_MAGIC:
        yield from _unzstd(file)
    else:
        while block := file.read(BLOCK_BYTES):
            yield block


def _text(path: Path, watch: Watch | None = None) -> tuple[int, Iterator[bytes]]:
    """Size of a file's byte order mark, and its content after that, from UTF-16 too, as UTF-8."""
    source = decompressed(path, watch)
    first, damage = b"", None
    try:
        while len(first) < LONGEST_MARK and (piece := next(source, None)) is not None:
            first += piece
    except DamagedStream as error:
        damage = error
    for mark, encoding in MARKS:
        if first.startswith(mark):
            if encoding is None:
                return len(mark), _rest(first[len(mark) :], source, damage)
            rest = _rest(first[len(mark) :], source, damage)
            return 0, codecs.iterencode(codecs.iterdecode(rest, encoding, "replace"), "utf-8")
    return 0, _rest(first, source, damage)


def _rest(first: bytes, source: Iterator[bytes], damage: DamagedStream | None) -> Iterator[bytes]:
    yield first
    if damage is not None:
        raise damage
    yield from source


def _gunzip(file: IO[bytes]) -> Iterator[bytes]:
    machine = zlib.decompressobj(wbits=31)
    pending = b""
    while True:
        if not pending:
            pending = file.read(BLOCK_BYTES // 4)
            if not pending:
                break
        if machine.eof:
            if not pending.strip(b"\0"):
                # Zero padding after the last member is allowed.
                pending = b""
                continue
            machine = zlib.decompressobj(wbits=31)
        before = machine.copy()
        try:
            text = machine.decompress(pending, BLOCK_BYTES)
        except zlib.error as error:
            yield _salvage(before, pending)
            raise DamagedStream(str(error)) from None
        pending = machine.unused_data if machine.eof else machine.unconsumed_tail
        if text:
            yield text
    if not machine.eof:
        yield machine.flush()
        raise DamagedStream("the gzip data ends early")


def _salvage(machine: zlib._Decompress, pending: bytes) -> bytes:
    """What can be had before the byte at which decompression fails."""
    got = []
    try:
        for i in range(len(pending)):
            got.append(machine.decompress(pending[i : i + 1]))
    except zlib.error:
        pass
    return b"".join(got)


def _unzstd(file: IO[bytes]) -> Iterator[bytes]:
    machine = _frame_reader()
    pending, fresh = b"", True
    while True:
        if machine.eof:
            machine, pending, fresh = _frame_reader(), machine.unused_data, True
        elif not pending and machine.needs_input:
            pending = file.read(BLOCK_BYTES // 8)
            if not pending:
                break
        else:
            try:
                # Small pieces: what a failing one had decoded is lost.
                text = machine.decompress(pending, BLOCK_BYTES // 8)
            except (zstd.ZstdError, MemoryError) as error:
                raise DamagedStream(str(error)) from None
            pending, fresh = b"", False
            if text:
                yield text
    if not fresh:
        raise DamagedStream("the zstd data ends early")


def _frame_reader() -> zstd.ZstdDecompressor:
    return zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: MOST_WINDOW_LOG}
    )


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of the decompressed content, for recognising it; never raises on damage."""
    got = b""
    try:
        for block in _text(path)[1]:
            got += block
            if len(got) >= size:
                break
    except DamagedStream:
        pass
    return got[:size]


def blocks(path: Path, pieces: bool = False, watch: Watch | None = None) -> Iterator[Block]:
    """Cut a file into blocks of complete lines.

    A line of more than ``MAX_LINE_BYTES`` comes as a block of its own with ``too_long`` set and
    only its beginning kept, so that memory stays bounded whatever the file holds; with ``pieces``
    it comes whole, in unfinished blocks.

    Parameters
    ----------
    path : Path
        The file.
    pieces : bool
        For formats whose lines may have any length.
    watch : callable, optional
        See `Watch`.

    Yields
    ------
    Block
        In order; together they hold every line once.

    Raises
    ------
    DamagedStream
        After the lines before the damage were yielded, the cut one included.
    """
    offset, source = _text(path, watch)
    carry, number = b"", 1
    skipping, skipped, unfinished = False, 0, False
    damage: DamagedStream | None = None
    while True:
        try:
            fresh = next(source, None)
        except DamagedStream as error:
            fresh, damage = None, error
        if fresh is None:
            break
        if skipping:
            stop = fresh.find(b"\n")
            if stop < 0:
                skipped += len(fresh)
                continue
            yield _long(carry, number, offset, skipped + stop + 1)
            offset += skipped + stop + 1
            number += 1
            carry, fresh, skipping = b"", fresh[stop + 1 :], False
        text = carry + fresh if carry else fresh
        cut = text.rfind(b"\n") + 1
        if cut:
            block = _block(text[:cut] if cut < len(text) else text, number, offset)
            yield block
            number += len(block.lines.starts)
            offset += cut
            unfinished = False
        carry = text[cut:]
        if len(carry) > MAX_LINE_BYTES:
            if pieces:
                yield _block(carry, number, offset)._replace(unfinished=True)
                offset += len(carry)
                carry, unfinished = b"", True
            else:
                skipping, skipped, carry = True, len(carry), carry[:1024]
    if skipping:
        yield _long(carry, number, offset, skipped)
    elif carry:
        yield _block(carry, number, offset)
    elif unfinished:
        yield _long(b"", number, offset, 0)._replace(too_long=False)
    if damage is not None:
        raise damage


def _block(text: bytes, number: int, offset: int) -> Block:
    buffer = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(buffer == 10)
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    lines = Lines(buffer, starts, _without_return(buffer, starts, ends))
    return Block(lines, number, offset, len(text))


def _without_return(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cut the carriage return of lines that end in one."""
    last = np.maximum(ends - 1, 0)
    shorter: NDArray[np.int64] = ends - ((ends > starts) & (buffer[last] == 13))
    return shorter


def _long(kept: bytes, number: int, offset: int, size: int) -> Block:
    lines = Lines(np.frombuffer(kept, np.uint8), np.zeros(1, np.int64), np.array([len(kept)]))
    return Block(lines, number, offset, size, too_long=True)
