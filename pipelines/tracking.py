"""MLflow: its store, runs and models in its own format. The only file that imports mlflow."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
REACH_S = 5.0
"""Within so many seconds a server has to answer."""
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    # JSON alone goes to stdout.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # Its own defaults retry for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
}
"""Of mlflow, where the environment doesn't say otherwise."""
_REACHED: set[str] = set()


def tracking_uri() -> str:
    """``MLFLOW_TRACKING_URI`` where set, the repository's SQLite store otherwise."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{ROOT / 'mlruns' / 'mlflow.db'}"


def shown_uri() -> str:
    """The store's address without the user and password that may stand in it."""
    parts = urlsplit(tracking_uri())
    if "@" not in parts.netloc:
        # Put together again, sqlite:////x would lose the slashes that make it absolute.
        return tracking_uri()
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def check_store() -> None:
    """Refuse a store that can't be used, within seconds and without importing mlflow.

    Raises
    ------
    UserError
        When the server doesn't answer, or the database's folder can't be made.
    """
    uri = shown_uri()
    if uri.startswith("sqlite:"):
        try:
            _database(uri).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{uri}: {error.strerror}: correct MLFLOW_TRACKING_URI") from None
        return
    if not uri.startswith(("http://", "https://")):
        return
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=REACH_S):
            return
    except urllib.error.HTTPError as error:
        # A proxy before the server may ask for a password here already: mlflow will give it.
        if error.code not in (401, 403):
            raise UserError(
                f"{uri}: answers {error.code} to /health, so it is no MLflow server or not ready: "
                "correct MLFLOW_TRACKING_URI"
            ) from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise UserError(
            f"{uri}: MLflow server out of reach ({reason}): start it or correct "
            "MLFLOW_TRACKING_URI; a training is stored locally with --offline and sent later with "
            "`python -m pipelines.register --sync`"
        ) from None


def _database(uri: str) -> Path:
    return Path(uri.removeprefix("sqlite:///")).resolve()


def module() -> Any:
    """Mlflow itself, bound to the store.

    Raises
    ------
    UserError
        As :func:`check_store`.
    """
    if tracking_uri() not in _REACHED:
        check_store()
        _REACHED.add(tracking_uri())
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import mlflow

    mlflow.set_tracking_uri(tracking_uri())
    mlflow.set_registry_uri(tracking_uri())
    return mlflow


def client() -> Any:
    """An ``MlflowClient`` of the store."""
    return module().MlflowClient()


@contextmanager
def reported() -> Iterator[None]:
    """Turn mlflow's refusals into errors for the user.

    Raises
    ------
    UserError
        The store's own first line, with what to do where the reason is known.
    """
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        line = str(error).strip().splitlines()[0][:300]
        hint = ""
        if "401" in line or "not authenticated" in line.lower():
            hint = ": set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        elif "403" in line or "permission denied" in line.lower():
            hint = ": ask the server's administrator for permission to manage this model"
        raise UserError(f"{shown_uri()}: {line}{hint}") from None


def is_code(error: Exception, code: str) -> bool:
    """Whether an error is mlflow's with this code, such as ``RESOURCE_ALREADY_EXISTS``."""
    return getattr(error, "error_code", None) == code


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


def command_line() -> str:
    """The command that is running."""
    return " ".join(["cczoo", *sys.argv[1:]])


class Run:
    """One MLflow run that is under way."""

    def __init__(self, run_id: str, artifact_uri: str) -> None:
        self.run_id = run_id
        self.artifact_uri = artifact_uri.rstrip("/")

    def log_metrics(self, metrics: Mapping[str, float]) -> None:
        """Log finite numbers; MLflow refuses others."""
        import mlflow

        mlflow.log_metrics({k: float(v) for k, v in metrics.items() if np.isfinite(v)})

    def log_artifacts(self, directory: Path, to: str | None = None) -> None:
        """Keep a copy of a directory's files with the run."""
        import mlflow

        mlflow.log_artifacts(str(directory), artifact_path=to)


@contextmanager
def run(
    experiment: str,
    name: str,
    params: Mapping[str, Any],
    *,
    dataset_hash: str,
    tags: Mapping[str, str] | None = None,
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
    tags : mapping, optional
        More tags; one named as above replaces it.

    Yields
    ------
    Run
        To log metrics and artifacts with.
    """
    mlflow = module()
    own = {"git_commit": git_commit(), "dataset_hash": dataset_hash, "command": command_line()}
    active_experiment = mlflow.set_experiment(experiment_id=experiment_id(experiment))
    with mlflow.start_run(
        experiment_id=active_experiment.experiment_id, run_name=name, tags={**own, **(tags or {})}
    ) as active:
        mlflow.log_params(flatten(params))
        yield Run(active.info.run_id, active.info.artifact_uri)


def experiment_id(name: str) -> str:
    """Id of an experiment, made when it doesn't exist; SQLite's files lie beside the database."""
    mlflow = module()
    found = mlflow.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    uri = tracking_uri()
    local = uri.startswith("sqlite:")
    location = (_database(uri).parent / "artifacts").as_uri() if local else None
    return str(mlflow.create_experiment(name, artifact_location=location))


def save_onnx(path: Path, example: NDArray[np.float32], to: Path) -> None:
    """Write an ONNX model as MLflow keeps models, with its signature.

    Parameters
    ----------
    path : Path
        The ONNX file.
    example : ndarray of float32, shape (n, features)
        Some inputs: the signature is inferred from them and the model's answers.
    to : Path
        Directory to make.
    """
    import onnx
    import onnxruntime

    mlflow = module()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: example}
    outputs = [o.name for o in session.get_outputs()]
    answers = dict(zip(outputs, session.run(outputs, feed), strict=True))
    mlflow.onnx.save_model(
        onnx.load(str(path)),
        str(to),
        signature=mlflow.models.infer_signature(feed, answers),
        pip_requirements=[f"onnxruntime=={onnxruntime.__version__}"],
        save_as_external_data=False,
    )


def download(uri: str, to: Path) -> Path:
    """Bring an artifact directory into ``to`` and say where it lies."""
    return Path(module().artifacts.download_artifacts(artifact_uri=uri, dst_path=str(to)))


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mapping to ``{"a.b": value}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
