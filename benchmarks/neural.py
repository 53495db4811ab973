"""Does a network on raw series beat classifiers on features? Same splits, paired differences.

Goes on where a killed run stopped (.bench/neural); a few minutes on two quiet cores.

    python benchmarks/neural.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from data.results import plain
from models.sbd.results.neural import NEURAL
from pipelines.cli import main as cczoo

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".bench" / "neural"
QUICK = {"epochs": 1, "splits": 1, "repeats": 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one epoch, one split of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    settings = yaml.safe_load((ROOT / "params.yaml").read_text())
    out = PLACE
    if args.quick:
        models = settings["models"]["sbd"]
        models["neural"] = {**models.get("neural", {}), **QUICK}
        out = PLACE.with_name("neural-quick")
        shutil.rmtree(out, ignore_errors=True)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as params:
        yaml.safe_dump(settings, params)
        params.flush()
        common = ["--params", params.name, "--out", str(out)]
        for step in ["protocol"] if args.quick else ["search", "protocol"]:
            # Tables for a reader; stdout is for the JSON alone.
            with contextlib.redirect_stdout(sys.stderr):
                status = cczoo(["train", "sbd", "neural", step, *common])
            if status:
                return status
    if args.json:
        print(json.dumps(plain(NEURAL.read(out)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
