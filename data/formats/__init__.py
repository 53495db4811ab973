"""Each log format is a module, found by name in ``FORMATS`` or by content with ``recognise``.

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
    "ftrace": "data.formats.ftrace",
    "tcpprobe": "data.formats.tcpprobe",
    "smartsbd-printk": "data.formats.smartsbd_printk",
    "ss": "data.formats.ss",
    "mpinfo": "data.formats.mpinfo",
    "iperf3": "data.formats.iperf3",
    "iperf3-text": "data.formats.iperf3_text",
    "tshark": "data.formats.tshark",
    "uccmisl-5g": "data.formats.uccmisl_5g",
    "starlink-vs-cellular": "data.formats.starlink_vs_cellular",
    "cicv5g": "data.formats.cicv5g",
    "nyu-mets": "data.formats.nyu_mets",
    "starlink-ping": "data.formats.starlink_ping",
    "wifi-cell-pairs": "data.formats.wifi_cell_pairs",
    "mahimahi": "data.formats.mahimahi",
    "time-mbps": "data.formats.time_mbps",
}
"""name -> module, imported when it is first needed."""


CERTAIN = 100


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
        if score == CERTAIN:
            break
    return best
