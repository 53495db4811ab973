"""A distilled tree as an entry of the zoo: integer form, ONNX, description, a run to replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from export.description import Description
from export.entry import describe_fitted
from export.fitted import source_of_fitted
from export.source import Source
from models.distill.rollout import Task
from models.distill.search import Found
from models.distill.tree import Student
from models.policies import ENTRY, entry, replay
from models.policies.in_tree import NETWORK, TreePolicy
from models.policies.observed import actions
from models.policies.policy import as_weights

REPLAY = "replay.json"


def meta_of(task: Task, command: str) -> dict[str, Any]:
    """Fields of :class:`models.meta.Meta` that a student's entry has."""
    teacher = task.teacher
    labels = actions(teacher.environment, task.kind, teacher.params)
    return {
        "family": entry.FAMILIES[teacher.environment, task.kind],
        "created_by": command,
        "labels": labels,
        "output": {"kind": "action"},
    }


def source_of_student(name: str, task: Task, student: Student, found: Found) -> Source:
    """A student as exporters take it."""
    features = task.deriver(1).features
    meta = meta_of(task, "")
    return source_of_fitted(name, student.estimator, features, meta, found.seen.astype(float), None)


def described(
    name: str, task: Task, found: Found, metrics: Mapping[str, Any], card: str, command: str
) -> Description:
    """What the entry of a chosen student says and holds.

    Parameters
    ----------
    name : str
        ``tcco-tree``.
    task : Task
    found : Found
    metrics : mapping
        For ``metrics.json``.
    card : str
    command : str
        What made it.
    """
    features = task.deriver(1).features
    made = describe_fitted(
        name, found.chosen.estimator, features, meta_of(task, command), found.seen.astype(float),
        metrics, card,
    )  # fmt: skip
    content = made.files[entry.TREE]
    policy = student_policy(name, task, content, found.settings)
    text = json.dumps(entry.described(policy).model_dump(mode="json"), indent=2, sort_keys=True)
    played = json.dumps(replay.recorded(policy), indent=2, sort_keys=True)
    more = {ENTRY: f"{text}\n".encode(), REPLAY: f"{played}\n".encode()}
    return replace(made, files={**made.files, **more})


def student_policy(
    name: str, task: Task, content: bytes, settings: Mapping[str, Any]
) -> TreePolicy:
    """A student as a congestion control, from its ONNX file."""
    teacher = task.teacher
    return TreePolicy(
        name=name,
        agent=teacher.agent,
        environment=teacher.environment,
        network=NETWORK,
        settings={"env": teacher.settings.get("env", {}), "distill": dict(settings)},
        params=teacher.params,
        layout=teacher.layout,
        kinds=teacher.kinds,
        weights=as_weights(name, content),
        trees=((task.kind, content),),
    )
