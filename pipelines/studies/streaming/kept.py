"""Schema of what the study of schedulers leaves for its page and for the report."""

from __future__ import annotations

from pathlib import Path

from data.results import Result, ResultFile

FOLDER = Path("docs/streaming")
COMMAND = "python -m pipelines.studies.streaming.command --pairs 1000 --traces DIR --keep"
SHOWN = {
    "stalls": "stalls",
    "stalled_s": "stalled, s",
    "startup_s": "start-up, s",
    "psnr_db": "PSNR, dB",
    "rate_mbps": "rate, Mbps",
    "goodput_mbps": "goodput, Mbps",
    "reorder_kb": "out of order, kB",
}
"""Metric -> its head in tables."""


class Estimate(Result):
    """Mean over pairs with its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float


class Row(Result):
    """A scheduler with a congestion control over some pairs.

    Attributes
    ----------
    links : str
        ``generated`` or ``measured``.
    pairs : int
    cc, scheduler : str
    mean, more : dict
        Metric -> its mean, and how much more that is than minRTT's, paired.
    """

    links: str
    pairs: int
    cc: str
    scheduler: str
    mean: dict[str, Estimate]
    more: dict[str, Estimate]


class Streaming(Result):
    """``summary.json``."""

    rows: tuple[Row, ...]


STREAMING = ResultFile("summary.json", Streaming, COMMAND)
