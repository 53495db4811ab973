"""Store zoo entries in the registry as versions of registered models, and fetch them again.

A version's artifacts are a model in MLflow's own ONNX format with the zoo entry, every file of
it, under ``entry/``, or that alone where it is a policy's; its tags hold the entry's hash. See
docs/registry.md.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError, unknown_name
from data.place import everything, scratch
from models import store
from models.policies import ENTRY as ENTRY_POLICY
from models.policies import acts_by
from pipelines import tracking
from pipelines.registry import owner

ENTRY = "entry"
LONGEST = 120
"""Characters of a group's name that stand in a registered name."""
STALE_S = 24 * 3600.0
"""A run of another host that is still open after so long was killed."""


@dataclass(frozen=True)
class Address:
    """``NAME[@ALIAS|/VERSION][?group=GROUP]``."""

    name: str
    alias: str = "champion"
    version: str = ""
    group: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address.

        Raises
        ------
        UserError
            When the text isn't an address.
        """
        # A group is meant as it is written: `isp=AT&T` is one, nothing in it is decoded.
        head, _, query = text.removeprefix("registry:").partition("?")
        group = query.removeprefix("group=")
        found = re.fullmatch(r"([\w.=-]+)(?:@([\w-]+)|/(\d+))?", head)
        if found is None or ("?" in text and (group == query or not group)):
            shown = f"registry:{text.removeprefix('registry:')}"
            raise UserError(
                f"{shown}: NAME[@ALIAS|/VERSION][?group=GROUP] expected, as in "
                "registry:smartsbd-dt@champion"
            )
        name, alias, version = found.groups()
        return cls(name, alias or "champion", version or "", group)

    @property
    def registered(self) -> str:
        """Registered name; for a group it is the name of the group's own model."""
        return group_model(self.name, self.group) if self.group else self.name


def group_model(name: str, group: str) -> str:
    """Registered name of a group's own model.

    Characters that a name can't hold become ``-`` and long names are cut; a hash then tells such
    groups apart.
    """
    plain = re.sub(r"[^\w=-]", "-", group)[:LONGEST]
    if plain != group:
        plain += f"-{hashlib.sha256(group.encode()).hexdigest()[:8]}"
    return f"{name}.{plain}"


def point_group(name: str, group: str) -> None:
    """Let a group without a model of its own use the pooled model ``name``."""
    ensure_model(group_model(name, group), {"uses": name})


def ensure_model(name: str, tags: Mapping[str, str]) -> bool:
    """Make a registered model with tags, or tag the existing one; returns whether it is new."""
    client = tracking.client()
    try:
        client.create_registered_model(name, tags=dict(tags))
        return True
    except Exception as error:
        if not tracking.is_code(error, "RESOURCE_ALREADY_EXISTS"):
            raise
    for key, value in tags.items():
        client.set_registered_model_tag(name, key, value)
    return False


def entry_files(directory: Path) -> dict[str, bytes]:
    """Files of a directory: name -> content."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def entry_hash(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents of an entry's files."""
    hashes = {name: store.sha256(content) for name, content in files.items()}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def entry_tags(model: store.ZooModel) -> dict[str, str]:
    """Tags that describe a version's entry."""
    meta = model.meta
    files = {name: model.read(name) for name in (*meta.files, "meta.json")}
    return {
        "entry_hash": entry_hash(files),
        "model_hash": model_hash(model),
        "schema_hash": meta.schema_hash,
        "data_hash": meta.data_hash,
        "family": meta.family,
        "kind": meta.kind,
    }


def model_hash(model: store.ZooModel) -> str:
    """SHA-256 of what answers: an integer form, an ONNX file, or a policy's own two files."""
    if ENTRY_POLICY not in model.meta.files:
        from export.source import source_of

        return source_of(model).model_hash
    hashes = {name: model.meta.files[name] for name in acts_by(model.meta.files)}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def log_entry(active: tracking.Run, name: str, directory: Path) -> str:
    """Send an entry's files as artifacts of a run; returns their address."""
    model = store.load(directory)
    kept = {*model.meta.files, "meta.json"}
    with scratch("register") as folder:
        to = folder / "model"
        if "model.onnx" in kept:
            vectors = np.array(model.read_json("vectors.json")["values"][:8], dtype=np.float32)
            tracking.save_onnx(directory / "model.onnx", vectors, to)
        (to / ENTRY).mkdir(parents=True)
        for file in kept:
            shutil.copy(directory / file, to / ENTRY / file)
        active.log_artifacts(to, f"models/{name}")
    return f"{active.artifact_uri}/models/{name}"


def create_version(
    name: str, source: str, run_id: str, tags: Mapping[str, str], pooled: str = ""
) -> str:
    """Register the artifacts at ``source`` with their tags in one step; returns the version.

    Parameters
    ----------
    name : str
        Registered name.
    source : str
        Address of the artifacts.
    run_id : str
        The run that they belong to.
    tags : mapping
        The version's tags.
    pooled : str
        For a group's own model: the model that serves the group until a version is promoted.
    """
    client = tracking.client()
    new = ensure_model(name, {"until_promoted": pooled} if pooled else {})
    made = client.create_model_version(name, source, run_id=run_id, tags=dict(tags))
    if not new:
        client.delete_registered_model_tag(name, "uses")
    return str(made.version)


def clean(experiment: str) -> list[str]:
    """Remove the versions that killed registrations have left, and close their runs.

    Returns
    -------
    list of str
        ``name/version`` of each removed version.
    """
    client = tracking.client()
    removed: list[str] = []
    # All of them first: closing one while paging would shift the pages.
    for run in list(tracking.search_runs(experiment, "attributes.status = 'RUNNING'")):
        lease = run.data.tags.get("writer", "")
        if lease and owner.is_gone(lease, STALE_S):
            removed += drop_versions(run.info.run_id)
            client.set_terminated(run.info.run_id, "KILLED")
    return removed


def drop_versions(run_id: str) -> list[str]:
    """Delete the versions that a run made."""
    client = tracking.client()
    removed = []
    for made in client.search_model_versions(f"run_id = '{run_id}'"):
        client.delete_model_version(made.name, made.version)
        removed.append(f"{made.name}/{made.version}")
    return removed


def find(address: Address) -> Any:
    """The version that an address stands for.

    Raises
    ------
    UserError
        When there is no such version; the message names what there is instead.
    """
    client, name = tracking.client(), address.registered
    registered = _registered(name)
    pooled = registered.tags.get("uses")
    if pooled:
        return find(Address(pooled, address.alias, address.version))
    aliases = registered.aliases
    version = address.version or aliases.get(address.alias)
    waiting = registered.tags.get("until_promoted")
    if version is None and waiting and address.alias == "champion":
        return find(Address(waiting))
    if version is None:
        there = ", ".join(f"@{a}" for a in sorted(aliases)) or "none"
        hint = f": cczoo promote {name}" if address.alias == "champion" else ""
        raise UserError(f"registry:{name} has no @{address.alias} (it has {there}){hint}")
    try:
        return client.get_model_version(name, str(version))
    except Exception as error:
        if not tracking.is_code(error, "RESOURCE_DOES_NOT_EXIST"):
            raise
        raise UserError(f"registry:{name} has no version {version}") from None


def own(address: Address) -> str:
    """Registered name whose aliases a promotion or a rollback moves.

    Raises
    ------
    UserError
        When there is none, or the group uses the pooled model, whose aliases serve others too.
    """
    pooled = _registered(address.registered).tags.get("uses")
    if pooled:
        raise UserError(
            f"{address.registered} has no model of its own, it uses {pooled}: name {pooled} itself "
            "to move it for all that use it"
        )
    return address.registered


def serving(name: str) -> Any:
    """Version that ``@champion`` of a registered name leads to; None if there is none yet.

    For a group whose own model was never promoted it is the pooled champion.
    """
    registered = _registered(name)
    version = registered.aliases.get("champion")
    if version is not None:
        return tracking.client().get_model_version(name, str(version))
    waiting = registered.tags.get("until_promoted")
    return serving(waiting) if waiting else None


def _registered(name: str) -> Any:
    client = tracking.client()
    try:
        return client.get_registered_model(name)
    except Exception as error:
        if not tracking.is_code(error, "RESOURCE_DOES_NOT_EXIST"):
            raise
        known = [model.name for model in client.search_registered_models(max_results=1000)]
        where = tracking.shown_uri()
        if not known:
            raise _no_model_yet(name) from None
        raise UserError(f"{unknown_name('registered model', name, known)} (in {where})") from None


def check_there(name: str) -> None:
    """Refuse to look a name up in a store that does not exist yet: looking would create it.

    Raises
    ------
    UserError
        With the same message as for a store without models.
    """
    if tracking.is_missing():
        raise _no_model_yet(name)


def _no_model_yet(name: str) -> UserError:
    return UserError(
        f"registry:{name}: {tracking.shown_uri()} has no model yet: train one, or correct "
        f"MLFLOW_TRACKING_URI{nearest(name)}"
    )


def nearest(name: str) -> str:
    """Hint at the zoo's name that is nearest to a mistyped one; "" if there is none."""
    names = store.names()
    near = [] if name in names else difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def fetch(version: Any) -> Path:
    """Bring a version's entry into a local directory and check that it is intact.

    Raises
    ------
    UserError
        When the registry's files aren't those that were registered.
    """
    where = f"registry:{version.name}/{version.version}"
    expected = version.tags.get("entry_hash", "")
    if not expected:
        raise UserError(f"{where}: holds no zoo entry: register it with this version's cczoo")
    local = tracking.ROOT / "mlruns" / "entries" / f"{version.name}-{expected[:16]}"
    if local.is_dir() and entry_hash(entry_files(local)) == expected:
        return local
    with scratch("fetch") as folder:
        try:
            found = tracking.download(f"{version.source}/{ENTRY}", folder)
        except OSError as error:
            raise UserError(f"{where}: files missing from the registry: {error}") from None
        files = entry_files(found)
    if entry_hash(files) != expected:
        raise UserError(
            f"{where}: altered since it was registered: take another version, or train again"
        )
    store.replace_directory(local, files, everything)
    return store.load(local).directory


def fetch_entry(text: str) -> str:
    """Bring the entry at ``NAME[@ALIAS|/VERSION][?group=GROUP]`` into a local directory.

    Parameters
    ----------
    text : str
        The address; without alias and version it is that of the champion.

    Returns
    -------
    str
        The directory of the intact entry.

    Raises
    ------
    UserError
        When there is no such version, or its files were altered.
    """
    address = Address.parse(text)
    check_there(address.registered)
    tracking.module()
    with tracking.reported():
        return str(fetch(find(address)))
