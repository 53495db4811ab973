"""Write the tables of docs/drive.md from the runs that are kept in docs/drive/runs.jsonl.

python -m pipelines.drive.page                               # from what is kept
python -m pipelines.drive.page --take build/drive/drive.jsonl  # keep these runs, then write
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.drive import summary, tables
from pipelines.drive.simulated import FIGURES
from pipelines.marked import Marks

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, RUNS = DOCS / "drive.md", DOCS / "drive" / "runs.jsonl"
MARKS = Marks("<!-- runs: python -m pipelines.drive.page -->")
KEPT = ("scenario", "site", "control", "repeat", "seed", "policy", "valid", "reasons", "kernel",
        "started", "load", "steal", *FIGURES, "simulated", "agent", "ns_per_ack", "receiver",
        "queue_policies", "beside_mbps")  # fmt: skip
"""What of a record its tables need, and what tells a reader of the machine."""


def taken(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Records with no more than `KEPT`, by scenario, repeat and time."""
    short = [{name: r[name] for name in KEPT if name in r} for r in records]
    return sorted(short, key=lambda r: (r["scenario"], r["repeat"], r["started"]))


def written(records: Sequence[Mapping[str, Any]]) -> str:
    """The tables of all runs, with an empty line before and after them."""
    return f"\n{tables.markdown(summary.summarise(records))}\n"


def main() -> int:
    """Run as ``python -m pipelines.drive.page``."""
    from data.lab.runs import resume

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--take", type=Path, help="drive.jsonl of a folder that runs were kept in")
    args = parser.parse_args()
    if args.take is not None:
        lines = [json.dumps(record) + "\n" for record in taken(resume(args.take))]
        RUNS.parent.mkdir(exist_ok=True)
        RUNS.write_text("".join(lines), encoding="utf-8")
    text = written([json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()])
    page = MARKS.placed(PAGE.read_text(encoding="utf-8"), text, str(PAGE))
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
