"""docs/retrain.md, command by command, as its reader would."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "retrain.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
SITES = ("shanghai", "guangzhou", "silicon-valley")

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture
def checkout(tmp_path):
    """A reader's folder: 84 logs and their labels, in a checkout with a store of its own."""
    for name in ("models", "params.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    campaign = ROOT / "data" / "raw" / "smartsbd-paper"
    labels = pl.read_csv(campaign / "labels.csv", infer_schema=False)
    chosen = labels.filter(pl.col("dataset").is_in(SITES)).group_by("dataset", "label").head(14)
    (tmp_path / "my-logs").mkdir()
    for source in chosen["source"]:
        shutil.copy(campaign / source, tmp_path / "my-logs")
    chosen = chosen.with_columns(pl.col("source").str.split("/").list.last())
    chosen.write_csv(tmp_path / "my-labels.csv")
    return tmp_path


def test_own_logs_become_a_verified_bundle_of_a_promoted_model(checkout):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MLFLOW_TRACKING_URI": f"sqlite:///{checkout}/mlflow.db",
    }
    printed = ""
    for block in COMMANDS:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block],
            cwd=checkout, env=environment, capture_output=True, text=True, check=False,
            timeout=3600,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        printed += done.stdout
    assert "84 connections" in printed
    assert json.loads((checkout / "zoo-dt.json").read_text())["accuracy"] > 0.7
    assert (checkout / "my-zoo" / "smartsbd-dt" / "card.md").is_file()
    assert "first model of our own" in printed, "the log has the reason"
    bundle = json.loads((checkout / "build" / "smartsbd-dt" / "manifest.json").read_text())
    kept = json.loads((checkout / "my-zoo" / "smartsbd-dt" / "meta.json").read_text())
    assert bundle["schema_hash"] == kept["schema_hash"]


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([\w/.-]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
