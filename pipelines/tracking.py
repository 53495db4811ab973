"""Use MLflow's store, runs and model format; no other file imports mlflow."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
REACH_S = 5.0
"""Seconds within which a server has to answer."""
PAGE = 1000
"""Runs in one page of a search."""
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # What goes wrong is raised as an exception and reported in one line: see `reported`.
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    # JSON alone goes to stdout.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # Its own defaults retry for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
}
"""Settings of mlflow's that hold unless the environment has others."""
ADVICE = {
    "locked": "another program holds the registry's database: end it or wait, then run again",
    "readonly": "the registry's database can't be written: make it and its folder writable",
    "unable to open": "make the registry's database and its folder readable and writable",
    "not a database": "this is no registry: correct MLFLOW_TRACKING_URI, or move the file away",
    "no such": "this is no registry: correct MLFLOW_TRACKING_URI, or move the file away",
    "disk is full": "make room on the disk of the registry's database, then run again",
}
"""Words in a message of SQLite -> advice."""
_REACHED: set[str] = set()


def tracking_uri() -> str:
    """``MLFLOW_TRACKING_URI`` if it is set, the repository's SQLite store otherwise."""
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
        When the server doesn't answer, the database's folder can't be made, or the file is no
        database, is damaged, or stays locked.
    """
    uri = shown_uri()
    if uri.startswith("sqlite:"):
        path = _database(uri)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{uri}: {error.strerror}: correct MLFLOW_TRACKING_URI") from None
        _check_database(path)
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
            "`python -m pipelines.registry.register --sync`"
        ) from None


def is_missing() -> bool:
    """Whether the store is a SQLite file that doesn't exist yet: there is nothing to read."""
    uri = tracking_uri()
    try:
        return uri.startswith("sqlite:") and not _database(uri).exists()
    except OSError:
        return False  # `check_store` says what is wrong with it


def _database(uri: str) -> Path:
    return Path(uri.removeprefix("sqlite:///")).resolve()


def _check_database(path: Path) -> None:
    """Read a database through and take its lock once, as every command of the registry will.

    Mlflow fills a new or empty one.
    """
    try:
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            return
        if not path.is_file():
            raise UserError(f"{path}: not a file: correct MLFLOW_TRACKING_URI")
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", REACH_S, uri=True)) as found:
            answer = found.execute("PRAGMA quick_check(1)").fetchone()[0]
            if answer != "ok":
                raise sqlite3.DatabaseError(str(answer))
            found.execute("SELECT experiment_id FROM experiments LIMIT 1")
            found.execute("BEGIN IMMEDIATE")
            found.rollback()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: correct MLFLOW_TRACKING_URI") from None
    except sqlite3.Error as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: {reason}: {_advice(reason)}") from None


def _advice(reason: str) -> str:
    """Advice for the user about a message of SQLite."""
    for words, advice in ADVICE.items():
        if words in reason.lower():
            return advice
    return "the registry's database is damaged: restore a copy, or move it away to begin anew"


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
        With the first line of the store's own message, and what to do if the reason is known.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (MlflowException, DBAPIError) as error:
        line = str(error).strip().splitlines()[0][:300]
        if "(sqlite3." in line:
            # Of SQLAlchemy's form "(sqlite3.OperationalError) database is locked".
            reason = line.rpartition(") ")[2]
            raise UserError(f"{_database(tracking_uri())}: {reason}: {_advice(reason)}") from None
        hint = ""
        if "401" in line or "not authenticated" in line.lower():
            hint = ": set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        elif "403" in line or "permission denied" in line.lower():
            hint = ": ask the server's administrator for permission to manage this model"
        raise UserError(f"{shown_uri()}: {line}{hint}") from None


def is_code(error: Exception, code: str) -> bool:
    """Whether an error is one of mlflow's with this code, such as ``RESOURCE_ALREADY_EXISTS``."""
    return getattr(error, "error_code", None) == code


def search_runs(experiment: str, condition: str, order: str = "") -> Iterator[Any]:
    """All runs of an experiment for which a condition holds, page by page.

    Parameters
    ----------
    experiment : str
        Name of the experiment, which is made if it doesn't exist.
    condition, order : str
        Filter and order in mlflow's language, such as ``attributes.status = 'RUNNING'`` and
        ``attributes.start_time ASC``.
    """
    found, token = client(), None
    where, by = [experiment_id(experiment)], [order] if order else None
    while True:
        page = found.search_runs(where, condition, order_by=by, max_results=PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def git_commit() -> str:
    """Commit of the checkout (``-dirty`` if tracked files differ); ``unknown`` outside of one."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("-dirty" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def command_line() -> str:
    """The command that is running."""
    return " ".join(["cczoo", *sys.argv[1:]])


class Run:
    """One MLflow run that is under way."""

    def __init__(self, run_id: str, artifact_uri: str) -> None:
        self.run_id = run_id
        self.artifact_uri = artifact_uri.rstrip("/")

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log finite numbers, of a curve with their step; MLflow refuses others."""
        import mlflow

        finite = {k: float(v) for k, v in metrics.items() if np.isfinite(v)}
        mlflow.log_metrics(finite, step=step)

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
    selection: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> Iterator[Run]:
    """Track one run: commit, parameters, data hash and command first, then whatever is logged.

    Parameters
    ----------
    experiment : str
        Name of the experiment, which is made if it doesn't exist.
    name : str
        The run's name.
    params : mapping
        Nested parameters; written flat, joined by dots.
    dataset_hash : str
        SHA-256 of the data the run learns from.
    selection : mapping, optional
        Store, version, condition and fingerprint of that data, where it comes from a store; they
        are the run's data set.
    tags : mapping, optional
        More tags; one of the same name as a tag above replaces it.

    Yields
    ------
    Run
        The run, to log metrics and artifacts with.
    """
    mlflow = module()
    own = {"git_commit": git_commit(), "dataset_hash": dataset_hash, "command": command_line()}
    if selection:
        own |= {f"store_{name}": selection[name] for name in ("id", "version", "where")}
    active_experiment = mlflow.set_experiment(experiment_id=experiment_id(experiment))
    with mlflow.start_run(
        experiment_id=active_experiment.experiment_id, run_name=name, tags={**own, **(tags or {})}
    ) as active:
        mlflow.log_params(flatten(params))
        if selection:
            _log_selection(selection)
        yield Run(active.info.run_id, active.info.artifact_uri)


def _log_selection(selection: Mapping[str, str]) -> None:
    """Log rows of a store as the data set that the active run learns from."""
    import mlflow
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.data.meta_dataset import MetaDataset

    source = CodeDatasetSource(
        tags={name: selection[name] for name in ("store", "id", "version", "where")}
    )
    digest = selection["fingerprint"][:32]
    name = f"{selection['store']}@{selection['version']}"
    data = MetaDataset(source, name=name, digest=digest)  # type: ignore[abstract]
    mlflow.log_input(data, context="training", tags={"where": selection["where"] or "all"})


def experiment_id(name: str) -> str:
    """Id of an experiment, which is made if it doesn't exist; SQLite's artifacts lie beside it."""
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
    example : float32 array [N, d]
        Some inputs; the signature is inferred from them and the model's answers.
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
    """Copy an artifact directory into ``to``; returns its path."""
    return Path(module().artifacts.download_artifacts(artifact_uri=uri, dst_path=str(to)))


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turn a nested mapping into a flat one: ``{"a.b": value}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
