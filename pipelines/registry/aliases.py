"""Move ``@champion`` and ``@previous``, one at a time, and keep an audit log of every move.

Each move is a run of its own in the experiment ``promotions``, begun before the first alias is
moved and ended after the last, so that a killed move is finished or undone by the next one. The
runs that ended are the audit log; the same events are appended to ``mlruns/promotions.jsonl``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import UserError
from pipelines import tracking
from pipelines.registry import owner

EXPERIMENT = "promotions"
PATIENCE_S = 120.0
"""A move takes a second or two: a lock of another host that is older was left by a killed one."""


class Lost(Exception):
    """Another move came first; the message names it."""


@dataclass(frozen=True)
class Move:
    """One move of the champion.

    Attributes
    ----------
    name : str
        Registered name.
    action : str
        ``promote`` or ``rollback``.
    champion : str
        The version before, as the mover saw it; empty if there was none.
    to : str
        The version after.
    previous : str
        ``@previous`` after the move; empty if there is none.
    evidence : mapping
        Content of ``evidence.json``.
    reason : str
        In the mover's own words.
    """

    name: str
    action: str
    champion: str
    to: str
    previous: str
    evidence: Mapping[str, Any]
    reason: str = ""


def champion_of(name: str) -> str:
    """Version of ``@champion``; empty if there is none.

    Raises
    ------
    UserError
        When nothing is registered under the name.
    """
    return aliases(name).get("champion", "")


def aliases(name: str) -> dict[str, str]:
    """Aliases of a registered model: alias -> version."""
    found = tracking.client().get_registered_model(name).aliases
    return {alias: str(version) for alias, version in found.items()}


def make(move: Move) -> dict[str, Any]:
    """Move the aliases and add the move to the audit log.

    Returns
    -------
    dict
        The event as the audit log has it.

    Raises
    ------
    Lost
        When another move is under way, or the champion isn't the one that the mover saw.
    """
    client = tracking.client()
    with _lock(client, move.name):
        _recover(client, move.name)
        now = champion_of(move.name)
        if now != move.champion:
            raise Lost(
                f"{move.name}: @champion is version {now or 'none'} now, not "
                f"{move.champion or 'none'} as when this began: another promotion was faster; "
                "look at it and run again"
            )
        event = _event(move)
        run = client.create_run(
            tracking.experiment_id(EXPERIMENT),
            tags={
                "mlflow.runName": f"{move.action} {move.name} {move.champion or '-'} -> {move.to}",
                "model": move.name,
                "to": move.to,
                "previous": move.previous,
                "event": json.dumps(event, sort_keys=True),
            },
        )
        client.log_dict(run.info.run_id, dict(move.evidence), "evidence.json")
        client.log_dict(run.info.run_id, event, "event.json")
        client.set_registered_model_alias(move.name, "champion", move.to)
        _set_previous(client, move.name, move.previous)
        if champion_of(move.name) != move.to:
            client.set_terminated(run.info.run_id, "FAILED")
            raise Lost(f"{move.name}: another promotion took @champion at the same moment")
        client.set_terminated(run.info.run_id, "FINISHED")
    _append(event)
    return event


def history(name: str) -> list[dict[str, Any]]:
    """The audit log of a model: its moves, the oldest first.

    Each event names the hash of the one before it, so that one that was changed or taken out shows:
    the ``intact`` of the event after it is false.
    """
    condition = f"tags.model = '{name}' and attributes.status = 'FINISHED'"
    runs = tracking.search_runs(EXPERIMENT, condition, "attributes.start_time ASC")
    events: list[dict[str, Any]] = []
    before = ""
    for run in runs:
        event = json.loads(run.data.tags["event"])
        events.append({**event, "intact": event["after"] == before})
        before = _hash(event)
    return events


def standing(events: list[dict[str, Any]]) -> list[str]:
    """Champions that rollbacks lead back through; the last one is the present champion."""
    stack: list[str] = []
    for event in events:
        if event["action"] == "rollback":
            stack = stack[:-1]
        elif event["to"] != (stack[-1] if stack else ""):
            stack.append(event["to"])
    return stack


def _event(move: Move) -> dict[str, Any]:
    events = history(move.name)
    last = {k: v for k, v in events[-1].items() if k != "intact"} if events else None
    evidence = json.dumps(move.evidence, sort_keys=True, default=str)
    return {
        "model": move.name,
        "action": move.action,
        "from": move.champion,
        "to": move.to,
        "previous": move.previous,
        "who": owner.who(),
        "when": owner.now(),
        "reason": move.reason,
        "evidence_sha256": hashlib.sha256(evidence.encode()).hexdigest(),
        "after": _hash(last) if last else "",
    }


def _hash(event: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(event, sort_keys=True).encode()).hexdigest()


def _set_previous(client: Any, name: str, version: str) -> None:
    if version:
        client.set_registered_model_alias(name, "previous", version)
    elif "previous" in aliases(name):
        client.delete_registered_model_alias(name, "previous")


def settle(name: str) -> None:
    """Finish or close a killed move, before its model's aliases are relied on.

    Raises
    ------
    Lost
        When the move wasn't killed but is still under way.
    """
    client = tracking.client()
    if _open_moves(name):
        with _lock(client, name):
            _recover(client, name)


def _open_moves(name: str) -> list[Any]:
    condition = f"tags.model = '{name}' and attributes.status = 'RUNNING'"
    return list(tracking.search_runs(EXPERIMENT, condition))


def _recover(client: Any, name: str) -> None:
    """Finish a killed move that has set its champion, and close one that has not."""
    for run in _open_moves(name):
        if champion_of(name) == run.data.tags["to"]:
            _set_previous(client, name, run.data.tags["previous"])
            client.set_terminated(run.info.run_id, "FINISHED")
            _append(json.loads(run.data.tags["event"]))
        else:
            client.set_terminated(run.info.run_id, "KILLED")


@contextmanager
def _lock(client: Any, name: str) -> Iterator[None]:
    """Lock a model's aliases against the moves of all other processes, on any host.

    The lock is a registered model: its name is a primary key of the store's database, so that of
    two who make it one is refused. It bears the lease of its holder, and is deleted after a second
    or two.
    """
    lock = f"lock.{name}"
    tags = {"who": owner.who(), "mark": owner.lease()}
    for last_try in (False, True):
        try:
            client.create_registered_model(lock, tags=tags)
            break
        except Exception as error:
            if not tracking.is_code(error, "RESOURCE_ALREADY_EXISTS"):
                raise
            held = _tags(client, lock)
            if last_try or (held and not owner.is_gone(held.get("mark", ""), PATIENCE_S)):
                raise Lost(
                    f"{name}: another promotion is under way (by {held.get('who', 'someone')}): "
                    "wait for its result, then run again"
                ) from None
            if held:
                _unlock(client, lock)
    try:
        yield
    finally:
        _unlock(client, lock)


def _unlock(client: Any, lock: str) -> None:
    try:
        client.delete_registered_model(lock)
    except Exception as error:
        if not tracking.is_code(error, "RESOURCE_DOES_NOT_EXIST"):
            raise


def _tags(client: Any, lock: str) -> dict[str, str]:
    """Tags of a lock; empty if it is gone already."""
    try:
        return dict(client.get_registered_model(lock).tags)
    except Exception as error:
        if not tracking.is_code(error, "RESOURCE_DOES_NOT_EXIST"):
            raise
        return {}


def _append(event: Mapping[str, Any]) -> None:
    path: Path = tracking.ROOT / "mlruns" / "promotions.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            log.write(json.dumps(event, sort_keys=True) + "\n")
            log.flush()
            os.fsync(log.fileno())
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}: the move is made and logged in the registry, but not there"
        ) from None
