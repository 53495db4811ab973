"""Print what ingest makes of every golden sample, as JSON for ``expected.json``.

Run `python tests/golden/regenerate.py > tests/golden/expected.json` after a change that is meant
to change events, and read the difference line by line.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from data.ingest import ingest
from data.store import iter_connections

GOLDEN = Path(__file__).parent
COUNTS = ("lines_read", "event_lines", "skipped_lines", "quarantined_lines", "events")


def sample(name: str) -> Path:
    (path,) = (p for p in GOLDEN.glob(f"{name}.*") if p.suffix != ".pyc")
    return path


def describe(name: str, folder: Path) -> dict[str, Any]:
    """Counts, quarantine and all events of one sample."""
    out = folder / name
    report = ingest([sample(name)], out)
    connections = []
    for row, series in iter_connections(out):
        events = {
            str(subflow): {
                variable: [list(pair) for pair in zip(t.tolist(), v.tolist(), strict=True)]
                for variable, (t, v) in sorted(variables.items())
            }
            for subflow, variables in sorted(series.items())
        }
        facts = {k: row[k] for k in ("connection", "token", "label", "kernel", "cc", "subflows")}
        connections.append(facts | {"events": events})
    bad = pl.read_parquet(out / "quarantine.parquet").to_dicts()
    return {
        "format": list(report["formats"]),
        "counts": {key: report[key] for key in COUNTS},
        "quarantine": [[row["line"], row["byte_offset"], row["reason"]] for row in bad],
        "connections": connections,
    }


if __name__ == "__main__":
    from data.formats import FORMATS

    with tempfile.TemporaryDirectory() as folder:
        found = {name: describe(name, Path(folder)) for name in FORMATS}
    text = json.dumps(found, indent=1)
    # One pair of numbers per line would make the file unreadable.
    import re

    text = re.sub(r"\[\s+(-?\d+),\s+(-?\d+)\s+\]", r"[\1, \2]", text)
    text = re.sub(r'\[\s+(\d+),\s+(\d+),\s+("[^"]*")\s+\]', r"[\1, \2, \3]", text)
    sys.stdout.write(text + "\n")
