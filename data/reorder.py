"""A log whose lines aren't in the order of time is read a second time, in order.

Readers that carry something from one line to the next (the shift of the RTT, the unwrapping of
ACK numbers) need the order. Lines are put into files by time, each small enough to be sorted in
memory, and read again in that order; lines written twice fall out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from data.formats.base import EVENT, FIRST_REASON, Batch, Lines, Reader
from data.stream import DamagedStream, blocks

BUCKET_BYTES = 32 << 20


def reordered(path: Path, timer: Reader, reader: Reader, work: Path) -> Iterator[Batch]:
    """Read a file's timed lines in the order of time.

    Parameters
    ----------
    path : Path
        The log.
    timer : Reader
        A fresh reader, used only for the lines' times.
    reader : Reader
        A fresh reader that gets the lines in order.
    work : Path
        Where the sorted pieces may lie for the time being.

    Yields
    ------
    Batch
        What ``reader`` finds.
    """
    low_us, high_us, size = _extent(path, timer.again() or timer)
    buckets = size // BUCKET_BYTES + 1
    with TemporaryDirectory(dir=work) as folder:
        files = [Path(folder) / str(i) for i in range(buckets)]
        writers = [file.open("wb") for file in files]
        for lines, times in _timed(path, timer):
            where = (times - low_us) * buckets // (high_us - low_us + 1)
            for start, end, time_us, bucket in zip(
                lines.starts.tolist(), lines.ends.tolist(), times.tolist(), where.tolist(),
                strict=True,
            ):  # fmt: skip
                if time_us >= 0:
                    text = lines.buffer[start:end].tobytes()
                    writers[bucket].write(b"%d %b\n" % (time_us, text))
        for writer in writers:
            writer.close()
        for file in files:
            lines = _sorted(file.read_bytes())
            if len(lines.starts):
                yield reader.parse(lines)


def _timed(
    path: Path, timer: Reader
) -> Iterator[tuple[Lines, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    try:
        for block in blocks(path):
            if block.too_long:
                continue
            batch = timer.parse(block.lines)
            if batch.line_time_us is not None:
                yield block.lines, np.where(batch.status < FIRST_REASON, batch.line_time_us, -1)
    except DamagedStream:
        return


def _extent(path: Path, timer: Reader) -> tuple[int, int, int]:
    low, high, size = np.iinfo(np.int64).max, -1, 0
    for lines, times in _timed(path, timer):
        size += len(lines.buffer)
        known = times[times >= 0]
        if len(known):
            low, high = min(low, int(known.min())), max(high, int(known.max()))
    return int(low), int(high), size


def _sorted(text: bytes) -> Lines:
    """Lines of one piece by time, each once."""
    rows = [line.split(b" ", 1) for line in text.split(b"\n")[:-1]]
    order = sorted(range(len(rows)), key=lambda i: int(rows[i][0]))
    kept: list[bytes] = []
    same: set[bytes] = set()
    last = b""
    for i in order:
        stamp, line = rows[i]
        if stamp != last:
            last, same = stamp, set()
        if line not in same:
            same.add(line)
            kept.append(line)
    joined = np.frombuffer(b"\n".join(kept), np.uint8)
    ends = np.cumsum([len(line) + 1 for line in kept], dtype=np.int64) - 1
    starts = ends - np.array([len(line) for line in kept], np.int64)
    return Lines(joined, starts, ends)


def kept_lines(batch: Batch) -> int:
    """Number of lines that gave events."""
    return int(np.count_nonzero(batch.status == EVENT))
