"""Logs on their way into a store: each has a name of its own, and is read in one unit."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from data.errors import UserError
from data.fleet.address import filesystem, is_url, whole
from data.fleet.pseudonyms import Pseudonyms
from data.inputs import NOT_LOGS, find_sources
from data.labels import LABELS_FILE, match_labels
from data.names import printable

DAY = re.compile(r"(?<!\d)(20\d\d)[-_]?(0[1-9]|1[0-2])[-_]?(0[1-9]|[12]\d|3[01])(?!\d)")
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Log:
    """A log: its name in the store, where it lies, and what is known of it before it is read.

    Attributes
    ----------
    name, place : str
    size : int
        Bytes.
    stamp : str
        Size and time of change: as long as it is the same, so is the content.
    attributes : mapping
        Its row of the labels file.
    day : str
        Its day, if that is known from a label, the command or its name.
    changed_day : str
        Day of its last change.
    connection_key : str or None
        Files of one key make one connection.
    context : str
        Hash of the attributes and settings.
    content : str
        Hash of the bytes; empty until it was computed.
    """

    name: str
    place: str
    size: int
    stamp: str
    attributes: Mapping[str, str | None]
    day: str
    changed_day: str
    connection_key: str | None = None
    context: str = ""
    content: str = ""

    @property
    def unit(self) -> str:
        """Logs of one unit are read together."""
        return f"file:{self.name}" if self.connection_key is None else f"key:{self.connection_key}"


@dataclass(frozen=True)
class Unit:
    """Logs that are read together, and the identity of what is in them."""

    logs: tuple[Log, ...]

    @property
    def intake(self) -> str:
        """Hash of contents, names and contexts: the same logs again would get the same one."""
        parts = sorted((log.content, log.name, log.context) for log in self.logs)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Naming:
    """How logs get their names and days.

    Attributes
    ----------
    root : str or None
        Names are paths below it; whole paths by default, so that those of two days differ.
    day : str or None
        Day of all logs.
    key : re.Pattern or None
        The connection key, in the logs' names.
    settings : mapping
        Whatever else the rows depend on.
    """

    root: str | None
    day: str | None
    key: re.Pattern[str] | None
    settings: Mapping[str, Any]


def find(
    paths: Sequence[str], labels: Path | None, naming: Naming, pseudonyms: Pseudonyms
) -> tuple[list[Log], dict[str, Any]]:
    """All logs at some addresses.

    Returns
    -------
    logs : list of Log
        Sorted by name.
    report : dict
        ``labels_files``, ``labels_unmatched``, ``sources_unlabelled`` and ``columns`` of labels.

    Raises
    ------
    UserError
        For addresses without any log, pipes, and wrong labels.
    """
    local = [Path(path) for path in paths if not is_url(path)]
    sources, found = find_sources(local) if local else ([], [])
    # Two runs would give a pipe's content one name each, or one name to two contents.
    for _, path in sources:
        if not path.is_file() or not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"{path}: is a pipe: a store takes files; save it to one first")
    if labels is not None:
        sources = [one for one in sources if one[1].resolve() != labels.resolve()]
    remote = [one for path in paths if is_url(path) for one in _remote(path)]
    given = [(name, Path(place)) for name, place, _ in remote]
    matched = match_labels([*sources, *given], labels, found)
    logs = [_local(path, matched.rows.get(name, {})) for name, path in sources]
    logs += [_far(place, about, matched.rows.get(name, {})) for name, place, about in remote]
    named = [_named(log, naming, pseudonyms) for log in logs]
    report = {
        "labels_files": matched.files,
        "labels_unmatched": matched.unmatched,
        "sources_unlabelled": len(logs) - len(matched.rows),
        "columns": [name for name in matched.columns if name != "day"],
    }
    return sorted(named, key=lambda log: log.name), report


def _local(path: Path, row: Mapping[str, str | None]) -> Log:
    about = path.stat()
    changed = _date(about.st_mtime)
    stamp = f"{about.st_size}:{about.st_mtime_ns}"
    return Log(
        printable(whole(str(path))), whole(str(path)), about.st_size, stamp, row, "", changed
    )


def _remote(place: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, URL and the store's own account of each log at a URL."""
    system, root = filesystem(place)
    scheme = place.partition("://")[0]
    try:
        found = system.find(root, detail=True)
    except OSError as error:
        raise UserError(f"{place}: {error}: give an address that can be read") from None
    if not found:
        raise UserError(f"{place}: no log files in there")
    logs = []
    for path, about in sorted(found.items()):
        name = path[len(root) :].lstrip("/") or PurePosixPath(path).name
        hidden = any(part.startswith(".") for part in name.split("/"))
        if not hidden and PurePosixPath(path).name not in NOT_LOGS:
            logs.append((printable(name), f"{scheme}://{path}", about))
        elif PurePosixPath(path).name == LABELS_FILE:
            raise UserError(
                f"{scheme}://{path}: labels in an object store aren't looked for: copy the file "
                "here and name it with --labels"
            )
    return logs


def _far(place: str, about: Mapping[str, Any], row: Mapping[str, str | None]) -> Log:
    changed = about.get("LastModified") or about.get("mtime") or about.get("updated") or ""
    day = str(changed)[:10] if re.match(r"\d{4}-\d\d-\d\d", str(changed)) else ""
    stamp = f"{about['size']}:{about.get('ETag') or about.get('etag') or changed}"
    return Log(place, place, int(about["size"]), stamp, row, "", day or "1970-01-01")


def _named(log: Log, naming: Naming, pseudonyms: Pseudonyms) -> Log:
    name = log.name
    if naming.root is not None:
        below = f"{whole(naming.root)}/"
        if not log.place.startswith(below):
            raise UserError(f"{log.place}: lies outside of --root {naming.root}")
        name = printable(log.place.removeprefix(below))
    match = naming.key.search(name) if naming.key else None
    label = log.attributes.get("day")
    found = DAY.search(name)
    day = naming.day or label or ""
    if day and not _is_day(day):
        where = "--day" if naming.day else f"{log.place}: day"
        raise UserError(f"{where} {day!r}: is none: write it as in 2026-11-01")
    if not day and found and _is_day("-".join(found.groups())):
        day = "-".join(found.groups())
    rest = {name: pseudonyms.text(value) for name, value in log.attributes.items()}
    rest = {name: value for name, value in rest.items() if name not in {"source", "day"}}
    key = str(match.group(1)) if match else None
    depends = [sorted(rest.items(), key=str), day, key, sorted(naming.settings.items())]
    context = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:16]
    # A hashed name hides its key as well, and keeps the logs of one key together.
    key = key if key is None else pseudonyms.source(key)
    return replace(
        log,
        name=pseudonyms.source(name),
        attributes=rest,
        day=day,
        connection_key=key,
        context=context,
    )


def _is_day(text: str) -> bool:
    """Whether a text is a day of the calendar, as in 2026-11-01."""
    import datetime

    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _date(seconds: float) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()


def contents_of(logs: Sequence[Log], count: Callable[[int], None]) -> list[str]:
    """SHA-256 of each log's bytes: the work of a process."""
    return [_content_of(log, count) for log in logs]


def _content_of(log: Log, count: Callable[[int], None]) -> str:
    system, path = filesystem(log.place)
    digest = hashlib.sha256()
    try:
        with system.open(path, "rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                count(len(block))
    except OSError as error:
        from data.fleet.address import readable

        raise readable(log.place, error) from None
    return digest.hexdigest()
