"""MLflow: runs, their models and where they are kept. The only file that imports mlflow."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent


def tracking_uri() -> str:
    """``MLFLOW_TRACKING_URI`` where set, the repository's SQLite store otherwise."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{ROOT / 'mlruns' / 'mlflow.db'}"


def git_commit() -> str:
    """Commit of the checkout (``-dirty`` when tracked files differ), ``unknown`` outside one."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("-dirty" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Run:
    """One MLflow run that is under way."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def log_metrics(self, metrics: Mapping[str, float]) -> None:
        """Log finite numbers; MLflow refuses others."""
        import mlflow

        mlflow.log_metrics({k: float(v) for k, v in metrics.items() if np.isfinite(v)})

    def log_artifacts(self, directory: Path, to: str | None = None) -> None:
        """Keep a copy of a directory's files with the run."""
        import mlflow

        mlflow.log_artifacts(str(directory), artifact_path=to)

    def log_onnx(
        self,
        name: str,
        path: Path,
        example: NDArray[np.float32],
        tags: Mapping[str, str] | None = None,
    ) -> str:
        """Log an ONNX model with its signature and register it under its name.

        Parameters
        ----------
        name : str
            Registered name, such as ``smartsbd-dt``.
        path : Path
            The ONNX file.
        example : ndarray of float32, shape (n, features)
            Some inputs: the signature is inferred from them and the model's answers.
        tags : mapping, optional
            Tags of the model version.

        Returns
        -------
        str
            The registered version.
        """
        import mlflow
        import onnx
        import onnxruntime
        from mlflow.models import infer_signature

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: example}
        outputs = [o.name for o in session.get_outputs()]
        answers = dict(zip(outputs, session.run(outputs, feed), strict=True))
        logged = mlflow.onnx.log_model(
            onnx.load(str(path)),
            name=name,
            signature=infer_signature(feed, answers),
            registered_model_name=name,
            pip_requirements=[f"onnxruntime=={onnxruntime.__version__}"],
            save_as_external_data=False,
        )
        version = str(logged.registered_model_version)
        client = mlflow.MlflowClient()
        for key, value in (tags or {}).items():
            client.set_model_version_tag(name, version, key, value)
        client.set_registered_model_alias(name, "candidate", version)
        return version


@contextmanager
def run(
    experiment: str,
    name: str,
    params: Mapping[str, Any],
    *,
    dataset_hash: str,
) -> Iterator[Run]:
    """Track one run: commit, parameters, data hash and command first, then whatever is logged.

    Parameters
    ----------
    experiment : str
        Made when it doesn't exist.
    name : str
        The run's name.
    params : mapping
        Nested parameters; written flat, joined by dots.
    dataset_hash : str
        SHA-256 of the data the run learns from.

    Yields
    ------
    Run
        To log metrics, artifacts and models with.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    mlflow.set_tracking_uri(tracking_uri())
    if mlflow.get_experiment_by_name(experiment) is None:
        local = tracking_uri().startswith("sqlite:")
        location = (ROOT / "mlruns" / "artifacts").as_uri() if local else None
        mlflow.create_experiment(experiment, artifact_location=location)
    mlflow.set_experiment(experiment)
    tags = {
        "git_commit": git_commit(),
        "dataset_hash": dataset_hash,
        "command": " ".join(["cczoo", *sys.argv[1:]]),
    }
    with mlflow.start_run(run_name=name, tags=tags) as active:
        mlflow.log_params(flatten(params))
        yield Run(active.info.run_id)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mapping to ``{"a.b": value}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
