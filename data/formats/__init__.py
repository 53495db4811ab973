"""Log formats: one file each, found by name in ``FORMATS`` or by content with ``recognise``.

A format module has ``DESCRIPTION`` (one line), ``sniff(head: bytes) -> int`` (0 no, 100 certain;
``head`` is the start of the decompressed file, cut anywhere) and ``reader(options) -> Reader``.
"""

from __future__ import annotations

import importlib
from typing import Any

from data.errors import unknown_name

FORMATS: dict[str, str] = {
    "probe-csv": "data.formats.probe_csv",
    "klog": "data.formats.klog",
}
"""name -> module, imported when it is first needed."""


def load(name: str) -> Any:
    """Import a format's module.

    Raises
    ------
    UserError
        For a name that isn't in ``FORMATS``.
    """
    if name not in FORMATS:
        raise unknown_name("format", name, ["auto", *FORMATS])
    return importlib.import_module(FORMATS[name])


def recognise(head: bytes) -> str | None:
    """Name the format that claims the start of a file most strongly.

    Parameters
    ----------
    head : bytes
        The first bytes of the decompressed file.

    Returns
    -------
    str or None
        None when no format claims it; the earlier in ``FORMATS`` wins a tie.
    """
    best, best_score = None, 0
    for name in FORMATS:
        score = int(load(name).sniff(head))
        if score > best_score:
            best, best_score = name, score
    return best
