"""Lines that could not be understood, written as they come: runs of equal ones are one row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

from data.formats.base import FIRST_REASON, REASONS
from data.schema import QUARANTINE
from data.stream import Block

Ints = NDArray[np.int64]
TEXT_BYTES = 200
COMPARED_BYTES = 4 * TEXT_BYTES
"""A character has up to four bytes."""
FLUSH_ROWS = 1 << 16


@dataclass
class _Run:
    """A row that may still grow by lines that equal it."""

    source: str
    line: int
    count: int
    offset: int
    reason: str
    text: bytes

    def goes_on(self, line: int, reason: str, text: bytes) -> bool:
        """Whether a line of the same source is one more of these."""
        return (self.line + self.count, self.reason, self.text) == (line, reason, text)


class Quarantine:
    """Writes quarantined lines in blocks, so that a file full of them costs no memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._last: _Run | None = None
        self._tables: list[pa.Table] = []
        self._rows = 0

    def add(self, source: str, line: int, offset: int, reason: str, text: str) -> None:
        """Keep one line: number from 1, offset from 0 in the decompressed file."""
        self._close_run()
        self._last = _Run(source, line, 1, offset, reason, text.encode()[:COMPARED_BYTES])

    def add_lines(
        self, source: str, block: Block, status: NDArray[np.uint8], reasons: dict[int, str]
    ) -> None:
        """Keep the lines of a block that were refused.

        Parameters
        ----------
        source : str
            The log's name.
        block : Block
            Its lines.
        status : uint8 array
            One per line; from ``FIRST_REASON`` on a line is quarantined.
        reasons : dict
            Line -> text that overrides the status's own.
        """
        bad = np.flatnonzero(status >= FIRST_REASON)
        code = status.astype(np.int64) - FIRST_REASON
        told = list(REASONS)
        number: dict[str, int] = {}
        for i, text in reasons.items():
            code[i] = number.setdefault(text, len(told))
            if code[i] == len(told):
                told.append(text)
        starts = block.lines.starts[bad]
        sizes = np.minimum(block.lines.ends[bad] - starts, COMPARED_BYTES)
        code = code[bad]
        first = np.flatnonzero(_begins(block.lines.buffer, bad, starts, sizes, code))
        count = np.diff(np.append(first, len(bad)))
        line, starts, sizes, code = (
            block.first_line + bad[first], starts[first], sizes[first], code[first],
        )  # fmt: skip

        def run(i: int) -> _Run:
            text = block.lines.buffer[starts[i] : starts[i] + sizes[i]].tobytes()
            offset = block.offset + int(starts[i])
            return _Run(source, int(line[i]), int(count[i]), offset, told[code[i]], text)

        # The first may go on from the block before, the last into the next.
        head, rest = run(0), slice(1, len(first) - 1)
        last = self._last
        if last and last.source == source and last.goes_on(head.line, head.reason, head.text):
            last.count += head.count
        else:
            self._close_run()
            self._last = head
        if len(first) == 1:
            return
        self._close_run()
        texts = _texts(block.lines.buffer, starts[rest], sizes[rest])
        self._write(
            pa.repeat(source, len(texts)), pa.array(line[rest]), pa.array(count[rest]),
            pa.array(block.offset + starts[rest]),
            pa.DictionaryArray.from_arrays(pa.array(code[rest]), pa.array(told)).cast(pa.string()),
            texts,
        )  # fmt: skip
        self._last = run(len(first) - 1)

    def _close_run(self) -> None:
        run, self._last = self._last, None
        if run:
            row = (run.source, run.line, run.count, run.offset, run.reason, _text(run.text))
            self._write(*(pa.array([value]) for value in row))

    def _write(self, *columns: Any) -> None:
        if len(columns[0]):
            self._tables.append(pa.Table.from_arrays(list(columns), schema=QUARANTINE))
            self._rows += len(columns[0])
        if self._rows >= FLUSH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, QUARANTINE, compression="zstd")
        self._writer.write_table(pa.concat_tables(self._tables).combine_chunks())
        self._tables, self._rows = [], 0

    def close(self) -> Path | None:
        """Finish; None when nothing was quarantined."""
        self._close_run()
        if self._rows:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        return self._path


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")[:TEXT_BYTES]


def _texts(buffer: NDArray[np.uint8], starts: Ints, sizes: Ints) -> pa.Array:
    """The lines' beginnings as text; at once where they are plain ASCII."""
    short = np.minimum(sizes, TEXT_BYTES)
    ends = np.cumsum(short)
    where = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - short), short)
    flat = buffer[where]
    if (flat < 128).all():
        offsets = np.append(0, ends).astype(np.int32)
        return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(flat))
    return pa.array(
        [
            _text(buffer[start : start + size].tobytes())
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]
    )


@njit(cache=True)
def _begins(buffer, lines, starts, sizes, codes):  # type: ignore[no-untyped-def]
    """Whether each refused line differs from the line before it."""
    fresh = np.ones(len(lines), np.bool_)
    for i in range(1, len(lines)):
        if lines[i] != lines[i - 1] + 1 or codes[i] != codes[i - 1] or sizes[i] != sizes[i - 1]:
            continue
        k = 0
        while k < sizes[i] and buffer[starts[i] + k] == buffer[starts[i - 1] + k]:
            k += 1
        fresh[i] = k < sizes[i]
    return fresh
