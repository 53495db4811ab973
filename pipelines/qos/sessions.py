"""Simulate streaming sessions over two paths each, into a table of contexts and qualities."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = """examples:
  cczoo qos sessions --out data/processed/qos.parquet
  cczoo qos sessions --count 2000 --seed 3 --out my-sessions.parquet --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--params", type=Path, help="YAML file with settings (models: qos)")
    parser.add_argument("--count", type=int, help="overrides the settings' number of sessions")
    parser.add_argument("--seed", type=int, help="overrides the settings' seed")
    parser.add_argument(
        "--out", type=Path, default=Path("data/processed/qos.parquet"), help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Simulate, and write the table whole or not at all."""
    import time
    from typing import cast

    import numpy as np
    import polars as pl

    from data.files import write_file
    from data.video.params import SessionParams
    from data.video.sessions import simulated
    from models.qos.params import Params
    from pipelines.output import print_json, progress
    from pipelines.params import load

    begun = time.process_time()
    settings = cast(Params, load(args.params).models.of("qos")).sessions
    given = {"count": args.count, "seed": args.seed}
    asked = {name: value for name, value in given.items() if value is not None}
    sessions = SessionParams.parse({**settings.model_dump(), **asked}, "qos sessions")
    batches = -(-sessions.count // sessions.batch)
    parts = list(progress(simulated(sessions), "simulate sessions", batches))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    frame = pl.DataFrame(columns)
    write_file(args.out, frame.write_parquet)
    spent = time.process_time() - begun
    if args.json:
        print_json({"out": str(args.out), "sessions": len(frame), "cpu_s": round(spent, 1)})
    else:
        print(f"{args.out}: {len(frame)} sessions, {spent:.0f} s of processor time")
    return 0
