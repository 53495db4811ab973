"""A labels file holds what the user knows about each log; its rows are matched to files by name."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from data.errors import UserError
from data.given import read_text
from data.names import printable
from data.schema import CONNECTIONS, LABELS

LABELS_FILE = "labels.csv"
MOST_BYTES = 1 << 30
BOTTLENECKS = "bottlenecks"
"""Column that names each subflow's bottleneck, in the order of their numbers: ``a,a,b``."""
SUFFIXES = (".gz", ".zst", ".csv", ".klog", ".txt", ".log", ".json")
FIXED = set(CONNECTIONS.names)
KNOWN = ("label", "dataset", "kernel", "cc")
"""Columns of a labels file that fill the connection's own columns."""


@dataclass
class Labels:
    """Rows of a labels file and what became of them.

    Attributes
    ----------
    columns : list of str
        Attribute columns in the file's order: all but ``source`` and the connection's own.
    rows : list of dict
        The file's rows; empty fields are None.
    """

    path: Path | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[dict[str, str | None]] = field(default_factory=list)

    def match(self, sources: list[str], paths: list[Path]) -> list[int | None]:
        """Find each source's row.

        A row's ``source`` fits a file if it is its path, its name relative to the given
        directory, or if the trailing components of both agree as far as the shorter goes;
        suffixes of compression and format may be missing. The longest agreement wins; between two
        equally long ones nothing is chosen.

        Parameters
        ----------
        sources, paths : lists of one length
            The files' names as in the ``source`` column, and their paths.

        Returns
        -------
        list of int or None
            Index into ``rows`` for each source.

        Raises
        ------
        UserError
            When two different rows fit the same file.
        """
        exact: dict[str, list[int]] = defaultdict(list)
        by_stem: dict[str, list[int]] = defaultdict(list)
        for i, (source, path) in enumerate(zip(sources, paths, strict=True)):
            for name in {source, str(path), str(path.resolve())}:
                exact[name].append(i)
            by_stem[_stems(source)[-1]].append(i)
        full = [_stems(str(path.resolve())) for path in paths]
        found: list[int | None] = [None] * len(sources)
        for number, row in enumerate(self.rows):
            name = row["source"] or ""
            # As the tables write a name, a backslash begins an escaped byte.
            if len(exact.get(name, ())) != 1:
                name = _clean(name)
            index = self._find(name, exact, by_stem, sources, full)
            if index is None:
                continue
            previous = found[index]
            if previous is None:
                found[index] = number
            elif self.rows[previous] != row:
                raise UserError(
                    f"{self.path}: lines {previous + 2} and {number + 2} both describe "
                    f"{sources[index]}: keep one"
                )
        return found

    def _find(
        self,
        name: str,
        exact: dict[str, list[int]],
        by_stem: dict[str, list[int]],
        sources: list[str],
        full: list[tuple[str, ...]],
    ) -> int | None:
        if not name:
            return None
        if len(exact.get(name, ())) == 1:
            return exact[name][0]
        stems = _stems(name)
        candidates = by_stem.get(stems[-1], [])
        scored = [
            (
                _agreement(stems, full[i]),
                PurePosixPath(sources[i]).name == PurePosixPath(name).name,
                i,
            )
            for i in candidates
        ]
        # Every component of the row's name has to agree, unless the row's name is the longer.
        fitting = sorted((s for s in scored if s[0] > 0), reverse=True)
        if not fitting or (len(fitting) > 1 and fitting[0][:2] == fitting[1][:2]):
            return None
        return fitting[0][2]


def _clean(name: str) -> str:
    name = name.strip().replace("\\", "/")
    return name[2:] if name.startswith("./") else name


def _stems(name: str) -> tuple[str, ...]:
    """Path components, the last without suffixes of compression and format."""
    parts = PurePosixPath(name).parts or ("",)
    last = parts[-1]
    while True:
        for suffix in SUFFIXES:
            if last.lower().endswith(suffix) and len(last) > len(suffix):
                last = last[: -len(suffix)]
                break
        else:
            return (*parts[:-1], last)


def _agreement(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """Number of equal trailing components."""
    equal = 0
    for a, b in zip(reversed(left), reversed(right), strict=False):
        if a != b:
            break
        equal += 1
    return equal


def read_labels(path: Path) -> Labels:
    """Read a labels file.

    Parameters
    ----------
    path : Path
        CSV with a header; the column ``source`` is needed, ``label`` is SB or NSB in any case,
        ``dataset``, ``kernel`` and ``cc`` fill the connection's own columns, all others are kept
        as attributes.

    Returns
    -------
    Labels
        The rows.

    Raises
    ------
    UserError
        For an unreadable file, a missing column, a row of the wrong width or an unknown label.
    """
    text = read_text(path, "labels file", "a CSV", MOST_BYTES)
    try:
        table = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise UserError(f"{path}: not a CSV: {error}") from None
    header = [name.strip() for name in table[0]] if table else []
    if "source" not in header:
        raise UserError(f"{path}: no column 'source' in its first line: add it (the logs' names)")
    if len(set(header)) != len(header) or "" in header:
        raise UserError(f"{path}: column names must be there and differ: {', '.join(header)}")
    clash = sorted((set(header) & FIXED) - {"source", *KNOWN})
    if clash:
        raise UserError(f"{path}: column {clash[0]!r} is one that ingest fills: rename it")
    rows: list[dict[str, str | None]] = []
    for number, fields in enumerate(table[1:], start=2):
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(header):
            raise UserError(
                f"{path}: line {number} has {len(fields)} fields, the header {len(header)}"
            )
        row = {k: v.strip() or None for k, v in zip(header, fields, strict=True)}
        if row.get("label") is not None:
            label = str(row["label"]).upper()
            if label not in LABELS:
                raise UserError(
                    f"{path}: line {number}: label {row['label']!r} is neither SB nor NSB: "
                    "write one of them or leave it empty"
                )
            row["label"] = label
        rows.append(row)
    columns = [name for name in header if name != "source" and name not in KNOWN]
    return Labels(path, columns, rows)


@dataclass
class Matched:
    """What the labels say of the sources.

    Attributes
    ----------
    columns : list of str
        Attribute columns of all files, each once.
    rows : dict
        source -> its row.
    unmatched : int
        Rows that fit no source.
    files : list of str
        The labels files.
    """

    columns: list[str] = field(default_factory=list)
    rows: dict[str, dict[str, str | None]] = field(default_factory=dict)
    unmatched: int = 0
    files: list[str] = field(default_factory=list)


def match_labels(sources: list[tuple[str, Path]], given: Path | None, found: list[Path]) -> Matched:
    """Match the sources with the given labels file, or each found one with its own directory.

    Parameters
    ----------
    sources : list of (str, Path)
        Names and paths of the logs.
    given : Path or None
        The file the user named.
    found : list of Path
        ``labels.csv`` files in the directories, used when none is given; of nested ones the inner
        wins.

    Returns
    -------
    Matched
        Rows by source.

    Raises
    ------
    UserError
        As ``read_labels`` and ``Labels.match``.
    """
    result = Matched()
    for path in [given] if given else sorted(found, key=lambda path: len(path.parts)):
        labels = read_labels(path)
        mine = [s for s in sources if given or s[1].is_relative_to(path.parent)]
        names = [
            name if given else printable(file.relative_to(path.parent).as_posix())
            for name, file in mine
        ]
        matches = labels.match(names, [file for _, file in mine])
        for (name, _), row in zip(mine, matches, strict=True):
            if row is not None:
                result.rows[name] = labels.rows[row]
        result.columns += [name for name in labels.columns if name not in result.columns]
        result.unmatched += len(labels.rows) - len({row for row in matches if row is not None})
        result.files.append(str(path))
    return result


def pair_label(row: Mapping[str, Any], pair: tuple[int, int]) -> str | None:
    """Whether two subflows of a connection share a bottleneck, as its labels say.

    Parameters
    ----------
    row : mapping
        The connection's row: ``bottlenecks``, if it has any, names the bottleneck of each of
        ``subflows`` in the order of their numbers; otherwise ``label`` holds for all pairs.
    pair : (int, int)
        Numbers of two subflows.

    Returns
    -------
    str or None
        SB, NSB, or None if nothing is known.

    Raises
    ------
    UserError
        When there are more or fewer names than subflows.
    """
    if not row.get(BOTTLENECKS):
        label: str | None = row["label"]
        return label
    names = [name.strip() for name in row[BOTTLENECKS].split(",")]
    numbers = sorted(about["subflow"] for about in row["subflows"])
    if len(names) != len(numbers):
        raise UserError(
            f"{row['source']}: bottlenecks {row[BOTTLENECKS]!r} has {len(names)} names for "
            f"{len(numbers)} subflows: name one for each, in the order of their numbers"
        )
    of = dict(zip(numbers, names, strict=True))
    return LABELS[0] if of[pair[0]] == of[pair[1]] else LABELS[1]
