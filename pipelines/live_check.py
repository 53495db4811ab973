"""Whether the agent computed live what training computes from the same run's log."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from features.spec import Feature


def compare(
    runs: Sequence[dict[str, Any]], logs: Path, features: Sequence[Feature]
) -> dict[str, int]:
    """Windows of the runs' kept logs, by :mod:`features.fixed_sbd`, beside the agent's.

    Parameters
    ----------
    runs : sequence of dict
        Valid runs with verdicts, lines of live.jsonl.
    logs : Path
        Folder of ``<scenario>-<site>-<cc>-<repeat>.klog.zst``; missing ones are left out.
    features : sequence of Feature
        The model's columns.

    Returns
    -------
    dict
        ``runs``; ``windows``, how many both have; ``equal``, those with the same integers in all
        columns; ``one_sided``, windows that one side alone has.
    """
    from data.ingest import ingest
    from data.lab import compact
    from data.store import iter_connections
    from features import fixed_sbd
    from features.params import SbdParams

    files = {}
    for run in runs:
        path = logs / f"{run['scenario']}-{run['site']}-{run['cc']}-{run['repeat']}.klog.zst"
        if path.is_file() and run["verdicts"]:
            files[path.name] = (path, run)
    counts = {"runs": 0, "windows": 0, "equal": 0, "one_sided": 0}
    if not files:
        return counts
    with tempfile.TemporaryDirectory(prefix="cczoo-live-") as work:
        events_dir = Path(work) / "events"
        ingest([path for path, _ in files.values()], events_dir)
        for row, events in iter_connections(events_dir):
            path, run = files[Path(row["source"]).name]
            port = compact.expand(path)[1]["wifi_sport"]
            made = fixed_sbd.compute(row | {"wifi_sport": port}, events, SbdParams(), features)
            live = [verdict["features"] for verdict in run["verdicts"]]
            both = min(len(live), len(made.x))
            counts["runs"] += 1
            counts["windows"] += both
            counts["equal"] += sum(live[i] == made.x[i].tolist() for i in range(both))
            counts["one_sided"] += len(live) + len(made.x) - 2 * both
    return counts
