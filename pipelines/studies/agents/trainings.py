"""Finished trainings of several seeds, as ``cczoo train NAME --seeds 10`` leaves them."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import UserError
from models.rl import checkpoint
from models.rl.policy import kept
from models.rl.training import CURVE
from pipelines.rl.cost import COST, Cost

OWN = {"seed", "threads", "learner_threads", "checkpoint_min"}
"""Settings in which trainings of one agent may differ: what they learn is of one kind."""


@dataclass(frozen=True)
class Training:
    """A training that has come to its end.

    Attributes
    ----------
    agent : str
    seed : int
    settings : dict
        All but `OWN`.
    module : AgentModule
        Its best network, whose weights have the SHA-256 `network`.
    network : str
    curve : list of dict
    steps, best_steps : int
    cost : Cost or None
    """

    agent: str
    seed: int
    settings: dict[str, Any]
    module: Any
    network: str
    curve: list[dict[str, float]]
    steps: int
    best_steps: int
    cost: Cost | None


def finished(folder: Path, agent: str) -> list[Training]:
    """Those of a folder that are at their end, by their seeds; names the others on stderr.

    Raises
    ------
    UserError
        When one is of another agent, or two have unlike settings.
    """
    found: list[Training] = []
    for path in sorted(folder.glob("seed-*"), key=_number):
        last = checkpoint.latest(path)
        if last is None:
            continue
        one = read(path)
        if one.agent != agent:
            raise UserError(f"{path}: a training of {one.agent!r}, not of {agent!r}")
        done = int(last.name.removeprefix("checkpoint-"))
        if done < one.steps:
            print(f"{path}: {done} of {one.steps} steps: left out", file=sys.stderr)
            continue
        if found:
            alike(found[0].settings, one.settings, str(path))
        found.append(one)
    return found


def read(path: Path) -> Training:
    """One training, whole or not.

    Raises
    ------
    UserError
        When there is none, or its curve is missing or damaged.
    """
    agent, params, module = kept(path)
    tree = params.model_dump(mode="json", by_alias=True)
    try:
        curve = json.loads((path / CURVE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path / CURVE}: no curve ({error}): train with --resume") from None
    return Training(
        agent=agent,
        seed=params.seed,
        settings={key: value for key, value in tree.items() if key not in OWN},
        module=module,
        network=digest(module),
        curve=curve,
        steps=params.steps,
        best_steps=best_steps(curve),
        cost=COST.read(path) if (path / COST.name).is_file() else None,
    )


def alike(wanted: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> None:
    """Check that two trainings have the same settings.

    Raises
    ------
    UserError
        With the first that differs.
    """
    for key, value in wanted.items():
        if settings.get(key) != value:
            raise UserError(
                f"{where}: was trained with {key}={settings.get(key)}, the others with {value}: "
                "seeds that are published together have the same settings"
            )


def best_steps(curve: list[dict[str, float]]) -> int:
    """Steps after which the greedy policy did best in validation; 0 if it never was validated."""
    best, found = -math.inf, 0
    for point in curve:
        if point.get("validation", -math.inf) > best:
            best, found = point["validation"], int(point["steps"])
    return found


def digest(module: Any) -> str:
    """SHA-256 of a network's weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def _number(path: Path) -> tuple[int, str]:
    text = path.name.removeprefix("seed-")
    return (int(text) if text.isdigit() else -1, text)
