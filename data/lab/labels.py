"""``labels.csv`` of a collection: the valid runs, with their labels and conditions."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

from data.lab import probes, validate

LABELS = "labels.csv"
# Columns of labels.csv after `source`; ports, conditions and where the record comes from.
LABEL_COLUMNS = (
    "label", "dataset", "family", "case", "cc", "wifi_sport", "duration_s", "rtt_wifi_ms",
    "rtt_lte_ms", "rate_wifi_mbps", "rate_lte_mbps", "queue_wifi_bytes", "queue_lte_bytes",
    "cross_traffic", "first", "group", "alpha_own", "seed", "kernel", "started",
)  # fmt: skip
# And those that only a collection with connections of three subflows has.
THREE_COLUMNS = ("rtt_wired_ms", "rate_wired_mbps", "queue_wired_bytes", "bottlenecks")


def accepted(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Valid records by id, after the paper's validation of each group by its best throughput."""
    valid = {r["id"]: r for r in records if r["valid"]}
    failed = validate.alpha_failures(valid.values())
    return {name: r for name, r in valid.items() if name not in failed}


def write_labels(out: Path, records: list[dict[str, Any]]) -> int:
    """Write labels.csv anew under a temporary name, then rename; returns its rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    kept = filter(logged, accepted(records).values())
    rows = sorted(kept, key=lambda r: (r["dataset"], r["id"]))
    three = any("bottlenecks" in record for record in rows)
    columns = [*LABEL_COLUMNS, *(THREE_COLUMNS if three else ())]
    writer.writerow(["source", *columns])
    slow = validate.alpha_failures(rows, own=True)
    for record in rows:
        if record.get("alpha_check"):
            record = {**record, "alpha_own": "no" if record["id"] in slow else "yes"}
        source = f"{record['dataset']}/{probes.log_name(record)}"
        writer.writerow([source, *(_cell(record.get(column)) for column in columns)])
    temporary = out / f".{LABELS}.tmp"
    temporary.write_text(text.getvalue(), encoding="utf-8")
    os.replace(temporary, out / LABELS)
    return len(rows)


def logged(record: dict[str, Any]) -> bool:
    """Whether the log stays beside its record; see `data.lab.plan.Group`."""
    return bool(record.get("log", True))


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
