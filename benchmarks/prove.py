"""Every model of the zoo on every target: ``cczoo zoo prove``, kept with the other benchmarks.

python benchmarks/prove.py [--json] [--model NAME]
"""

from __future__ import annotations

import argparse
import sys

from pipelines.cli import main as cczoo


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="this one alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    model = [args.model] if args.model else []
    return cczoo(["zoo", "prove", *model, *(["--json"] if args.json else [])])


if __name__ == "__main__":
    sys.exit(main())
