"""Every model of the zoo, exported to every target that can carry it, verified and timed here.

python benchmarks/prove.py [--json] [--model NAME]
"""

from __future__ import annotations

import argparse
import json
import sys

from export.functions import FUNCTIONS
from models.sbd.store import names
from pipelines.prove import prove


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="this one alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    chosen = [args.model] if args.model else [*names(), *sorted(FUNCTIONS)]
    rows = []
    for name in chosen:
        print(f"proving {name}", file=sys.stderr, flush=True)
        rows += prove(name)
    if args.json:
        print(json.dumps({"rows": rows}))
    else:
        for row in rows:
            print(row)
    return 1 if any(row["ok"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
