"""A month, scaled down: drift is noticed, and only the group that it hit gets a model."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import month

from pipelines import tracking
from pipelines.registry import aliases

pytestmark = pytest.mark.xdist_group("registry")


def test_a_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    nights = month.month(tmp_path, days=6, groups=2, change=5, logs=8, learned=4, last=3)
    assert [night["logs"] for night in nights] == [16] * 6
    noticed = {name for night in nights for name in night.get("drifted", [])}
    assert noticed == {"g01"}
    assert nights[3]["promoted"] == ["smartsbd-dt"]
    promoted = [name for night in nights[4:] for name in night.get("promoted", [])]
    assert promoted, nights
    assert set(promoted) == {"g01"}
    # The pooled model and the other group's are as they were; the run names its data.
    assert aliases.aliases("smartsbd-dt")["champion"] == "1"
    own = tracking.client().get_model_version_by_alias("smartsbd-dt.isp=g01", "champion")
    run = tracking.client().get_run(own.run_id)
    (used,) = run.inputs.dataset_inputs
    assert used.dataset.name.startswith(f"{tmp_path}/store@")
    assert "day >= 2026-11-0" in run.data.tags["store_where"]
    # What learned from connections that are forgotten is listed.
    told = month.cczoo(
        "store", "forget", tmp_path / "store", "--where", "isp = 'g01' and day = 2026-11-06"
    )
    assert told["connections"] == 8
    assert "smartsbd-dt.isp=g01" in {model["name"] for model in told["models"]}
    assert told["features"]["sbd"] > 0
    assert month.cczoo("store", "check", tmp_path / "store")["problems"] == []
