"""Two open formats of tables that could hold a store: Delta (deltalake), Iceberg (pyiceberg).

Size of the dependency, what a commit costs as commits add up, two writers at once in a folder, and
who reads the rows. Both do the same in an environment of their own (benchmarks/peers/tables.txt);
docs/fleet.md says what was chosen.

    python benchmarks/formats.py [--commits 10] [--rows 1000] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers.uv import uv

PEERS = Path(__file__).parent / "peers"
NEEDED = {"delta": "deltalake==1.6.6", "iceberg": "pyiceberg[sql-sqlite]==0.12.0"}


def size(tool: str, package: str, folder: Path) -> dict[str, Any]:
    """What a package brings with all that it needs."""
    install = [tool, "pip", "install", "-q", "--python", sys.executable, "--target", str(folder)]
    subprocess.run([*install, package], check=True)
    names = sorted(path.name.partition("-")[0] for path in folder.glob("*.dist-info"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"packages": names, "megabytes": round(size / 1e6, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1000, help="of each commit")
    parser.add_argument("--json", action="store_true", help="as always")
    args = parser.parse_args()
    tool = uv()
    if tool is None:
        print(json.dumps({"left_out": ["both: no uv here"]}))
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = {kind: size(tool, package, folder / kind) for kind, package in NEEDED.items()}
        run = [tool, "run", "--no-project", "--quiet", "--python", sys.executable]
        run += ["--with-requirements", str(PEERS / "tables.txt"), "python"]
        run += [str(PEERS / "two_formats.py"), str(folder / "tables")]
        done = subprocess.run(
            [*run, str(args.commits), str(args.rows)], stdout=subprocess.PIPE, text=True, check=True
        )
    found = json.loads(done.stdout)
    report = {kind: sizes[kind] | found[kind] for kind in NEEDED}
    met = all(
        row["side_by_side"]["lost"] == 0 and row["readers"]["polars"]["same"]
        for row in report.values()
    )
    print(json.dumps({"arguments": vars(args), **report, "met": met}, indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
