"""A run in a real MLflow store: what it must have recorded."""

from pathlib import Path

import mlflow
import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.tree import DecisionTreeClassifier

from pipelines import tracking


def test_run_records_commit_data_metrics_and_a_model_with_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)
    inputs = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    tree = DecisionTreeClassifier(random_state=0).fit(inputs, inputs[:, 0] > 0)
    onnx_file = tmp_path / "model.onnx"
    onnx_file.write_bytes(to_onnx(tree, inputs, options={"zipmap": False}).SerializeToString())
    monkeypatch.setattr(tracking, "ROOT", tmp_path)

    with tracking.run("sbd", "tree", {"tree": {"depth": 3}}, dataset_hash="abc") as active:
        active.log_metrics({"accuracy": 0.5, "undefined": float("nan")})
        version = active.log_onnx("smartsbd-dt", onnx_file, inputs[:5], {"schema": "s"})

    kept = mlflow.get_run(active.run_id).data
    assert kept.params == {"tree.depth": "3"}
    assert kept.metrics == {"accuracy": 0.5}
    assert kept.tags["dataset_hash"] == "abc"
    assert kept.tags["git_commit"] == "unknown"
    client = mlflow.MlflowClient()
    registered = client.get_model_version_by_alias("smartsbd-dt", "candidate")
    assert (str(registered.version), registered.tags["schema"]) == (version, "s")
    loaded = mlflow.onnx.load_model(f"models:/smartsbd-dt/{version}")
    signature = mlflow.models.get_model_info(f"models:/smartsbd-dt/{version}").signature
    assert loaded.graph.input
    assert signature.inputs.is_tensor_spec()
