"""Keep trainings as directories of plain files, and send them to the registry now or later.

The ``record.json`` of such a record states what was trained from what; ``reports/`` holds result
tables and ``zoo/<registered name>/`` one entry each. Records that wait lie in the outbox,
``mlruns/offline``.
"""

from __future__ import annotations

import fcntl
import json
import math
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from data.errors import UserError
from data.strict import Strict
from models import store
from pipelines import tracking
from pipelines.registry import entries as registry
from pipelines.registry import owner


class Content(Strict):
    """Content of ``record.json``.

    Attributes
    ----------
    id : str
        Sent with the run, so that a record is not sent twice.
    experiment, run : str
        Names of the experiment and of the run.
    params : mapping
        Settings of the training, nested.
    metrics : mapping
        Figures of the training, flat and finite.
    dataset_hash, git_commit, command, written : str
        Data, code, command and time of the training.
    versions : mapping
        Registered name -> tags besides those that the entry itself states.
    pooled : str
        After a training of groups, the model that serves each group that has no model of its own or
        whose own model isn't promoted yet; ``versions`` holds it too.
    pointed : tuple of str
        Registered names of groups that have no model of their own.
    selection : mapping
        Store, version, condition and fingerprint of the data, where it comes from a store; see
        `data.fleet.selection.Selection`.
    """

    id: str
    experiment: str
    run: str
    params: dict[str, Any]
    metrics: dict[str, float]
    dataset_hash: str
    git_commit: str
    command: str
    written: str
    versions: dict[str, dict[str, str]]
    pooled: str = ""
    pointed: tuple[str, ...] = ()
    selection: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """The results of a training that are registered.

    Attributes
    ----------
    experiment, run : str
        Names of the experiment and of the run.
    params : mapping
        Settings of the training, nested.
    metrics : mapping
        Figures of the training, flat; those that aren't finite are left out.
    dataset_hash : str
        SHA-256 of the training table.
    entries : mapping
        Registered name -> the entry's directory.
    tags : mapping
        Registered name -> more tags of the version, such as ``budget`` and ``group``.
    reports : Path, optional
        Directory of result tables.
    pooled, pointed, selection
        The same as in `Content`.
    """

    experiment: str
    run: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    dataset_hash: str
    entries: Mapping[str, Path]
    tags: Mapping[str, Mapping[str, str]]
    reports: Path | None = None
    pooled: str = ""
    pointed: tuple[str, ...] = ()
    selection: Mapping[str, str] = field(default_factory=dict)


def offline_folder() -> Path:
    """The outbox: the folder in which records wait to be sent."""
    return tracking.ROOT / "mlruns" / "offline"


def write(training: Training) -> Path:
    """Write a training as a record into the outbox, whole or not at all; returns its directory."""
    folder = offline_folder()
    folder.mkdir(parents=True, exist_ok=True)
    identity = uuid.uuid4().hex
    content = Content(
        id=identity,
        experiment=training.experiment,
        run=training.run,
        params=dict(training.params),
        metrics={k: v for k, v in training.metrics.items() if math.isfinite(v)},
        dataset_hash=training.dataset_hash,
        git_commit=tracking.git_commit(),
        command=tracking.command_line(),
        written=owner.now(),
        versions={name: dict(training.tags.get(name, {})) for name in training.entries},
        pooled=training.pooled,
        pointed=training.pointed,
        selection=dict(training.selection),
    )
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        made = Path(part) / "record"
        for name, directory in training.entries.items():
            model = store.load(directory)
            to = made / "zoo" / name
            to.mkdir(parents=True)
            for file in (*model.meta.files, "meta.json"):
                shutil.copy(directory / file, to / file)
        if training.reports is not None:
            shutil.copytree(training.reports, made / "reports")
        text = content.model_dump_json(indent=1) + "\n"
        (made / "record.json").write_text(text, encoding="utf-8")
        return made.rename(folder / f"{content.written.replace(':', '')}-{identity[:8]}")


@contextmanager
def alone() -> Iterator[None]:
    """Lock the outbox against other processes of this checkout; a killed one holds no lock."""
    folder = offline_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def waiting() -> list[Path]:
    """Records in the outbox, which have not been sent; the oldest first."""
    return sorted(path.parent for path in offline_folder().glob("[!.]*/record.json"))


def send(directory: Path) -> dict[str, Any]:
    """Send a record; the versions come last, all of them or none, then their ``@candidate``.

    Parameters
    ----------
    directory : Path
        The record, as :func:`write` returned it.

    Returns
    -------
    dict
        ``experiment``, ``run`` (its id), ``versions`` (name -> version) and ``removed`` (versions
        that killed registrations had left).
    """
    path = directory / "record.json"
    try:
        content = Content.parse(json.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable: {error}: train again") from None
    tracking.module()
    with tracking.reported():
        client = tracking.client()
        removed = registry.clean(content.experiment)
        versions = _sent(client, content)
        if versions is None:
            versions = _register(directory, content)
        run_id = versions.pop("")
        for name in content.pointed:
            registry.ensure_model(name, {"uses": content.pooled})
        for name, version in versions.items():
            client.set_registered_model_alias(name, "candidate", version)
    return {
        "experiment": content.experiment,
        "run": run_id,
        "versions": versions,
        "removed": removed,
    }


def _sent(client: Any, content: Content) -> dict[str, str] | None:
    """Versions made by an earlier call that was killed at its end; "" -> the id of its run."""
    condition = f"tags.record = '{content.id}' and attributes.status = 'FINISHED'"
    found = next(tracking.search_runs(content.experiment, condition), None)
    if found is None:
        return None
    run_id = found.info.run_id
    made = client.search_model_versions(f"run_id = '{run_id}'")
    return {"": run_id, **{version.name: str(version.version) for version in made}}


def _register(directory: Path, content: Content) -> dict[str, str]:
    tags = {
        "record": content.id,
        "writer": owner.lease(),
        "git_commit": content.git_commit,
        "command": content.command,
    }
    with tracking.run(
        content.experiment,
        content.run,
        content.params,
        dataset_hash=content.dataset_hash,
        selection=content.selection,
        tags=tags,
    ) as active:
        active.log_metrics(content.metrics)
        if (directory / "reports").is_dir():
            active.log_artifacts(directory / "reports", "reports")
        entries = {name: directory / "zoo" / name for name in content.versions}
        sources = {name: registry.log_entry(active, name, at) for name, at in entries.items()}
        versions = {"": active.run_id}
        try:
            for name, source in sources.items():
                own = {
                    "git_commit": content.git_commit,
                    **registry.entry_tags(store.load(entries[name])),
                    **content.versions[name],
                }
                pooled = content.pooled if name != content.pooled else ""
                made = registry.create_version(name, source, active.run_id, own, pooled)
                versions[name] = made
        except BaseException:
            registry.drop_versions(active.run_id)
            raise
    return versions
