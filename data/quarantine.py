"""Lines that could not be understood are written as they come; a run of equal ones is one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from arro3.core import Array, RecordBatch
from arro3.io import read_parquet
from numba import njit
from numpy.typing import NDArray

from data import parquet
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
    """Writes quarantined lines in files of some thousands, which cost no memory.

    Parameters
    ----------
    directory : Path
        Where the files go.
    stem : str
        Their names are ``{stem}-00000.parquet`` and following.
    """

    def __init__(self, directory: Path, stem: str) -> None:
        self._directory = directory
        self._stem = stem
        self._files: list[Path] = []
        self._last: _Run | None = None
        self._batches: list[RecordBatch] = []
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
        reason_texts = list(REASONS)
        number: dict[str, int] = {}
        for i, text in reasons.items():
            code[i] = number.setdefault(text, len(reason_texts))
            if code[i] == len(reason_texts):
                reason_texts.append(text)
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
            return _Run(source, int(line[i]), int(count[i]), offset, reason_texts[code[i]], text)

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
        reason = [reason_texts[number] for number in code[rest].tolist()]
        offset = block.offset + starts[rest]
        self._write([source] * len(texts), line[rest], count[rest], offset, reason, texts)
        self._last = run(len(first) - 1)

    def _close_run(self) -> None:
        run, self._last = self._last, None
        if run:
            row = (run.source, run.line, run.count, run.offset, run.reason, _text(run.text))
            self._write(*([value] for value in row))

    def _write(self, *columns: Any) -> None:
        if len(columns[0]):
            arrays = [
                Array.from_numpy(column) if isinstance(column, np.ndarray) else Array(column, kind)
                for column, kind in zip(columns, QUARANTINE.types, strict=True)
            ]
            self._batches.append(RecordBatch.from_arrays(arrays, schema=QUARANTINE))
            self._rows += len(columns[0])
        if self._rows >= FLUSH_ROWS:
            self._flush()

    def _flush(self) -> None:
        path = self._directory / f"{self._stem}-{len(self._files):05d}.parquet"
        parquet.write(path, QUARANTINE, self._batches)
        self._files.append(path)
        self._batches, self._rows = [], 0

    def close(self) -> list[Path]:
        """Finish; the files in their order, none when nothing was quarantined."""
        self._close_run()
        if self._rows:
            self._flush()
        return self._files


def join(files: Iterable[Path], path: Path) -> None:
    """Make one file of some, which go, with one block in memory at a time."""

    def batches() -> Iterator[RecordBatch]:
        for file in files:
            yield from read_parquet(file, batch_size=FLUSH_ROWS)
            file.unlink()

    parquet.write(path, QUARANTINE, batches(), FLUSH_ROWS)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")[:TEXT_BYTES]


def _texts(buffer: NDArray[np.uint8], starts: Ints, sizes: Ints) -> list[str]:
    """The lines' beginnings as text; at once if they are plain ASCII."""
    short = np.minimum(sizes, TEXT_BYTES)
    ends = np.cumsum(short)
    where = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - short), short)
    flat = buffer[where]
    if (flat < 128).all():
        text, edges = flat.tobytes().decode("ascii"), [0, *ends.tolist()]
        return [text[start:end] for start, end in pairwise(edges)]
    return [
        _text(buffer[start : start + size].tobytes())
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]


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
