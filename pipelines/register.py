"""DVC stage: track the training run in MLflow and register what it left in the zoo."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from models.sbd import store
from pipelines import params, tracking
from pipelines.output import print_json

EXPERIMENT = "smartsbd"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the stage."""
    parser.add_argument(
        "--features", type=Path, required=True, help="table the models learned from"
    )
    parser.add_argument("--reports", type=Path, required=True, help="result tables of the training")
    parser.add_argument("--headline", type=Path, required=True, help="flat JSON of metrics")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--out", type=Path, required=True, help="JSON: name -> registered version")


def run(args: argparse.Namespace) -> int:
    """Log one run with parameters, metrics, tables and every model of the zoo."""
    settings = params.load(args.params).model_dump(mode="json")
    data_hash = tracking.file_hash(args.features)
    versions: dict[str, str] = {}
    with tracking.run(EXPERIMENT, "make repro", settings, dataset_hash=data_hash) as active:
        active.log_metrics(json.loads(args.headline.read_text(encoding="utf-8")))
        active.log_artifacts(args.reports, "reports")
        for name in store.names():
            model = store.load(name)
            example = np.array(model.read_json("vectors.json")["values"][:8], dtype=np.float32)
            tags = {"schema_hash": model.meta.schema_hash, "data_hash": data_hash}
            path = model.directory / "model.onnx"
            versions[name] = active.log_onnx(name, path, example, tags)
            active.log_artifacts(model.directory, f"zoo/{name}")
    part = args.out.with_name(args.out.name + ".part")
    part.write_text(json.dumps({"run": active.run_id, "versions": versions}, indent=1) + "\n")
    part.replace(args.out)
    print_json({"experiment": EXPERIMENT, "run": active.run_id, "versions": versions})
    return 0


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__)
    add_arguments(command)
    raise SystemExit(run(command.parse_args()))
