"""Begin an online training with the network of another one, such as logs have taught."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from data.errors import UserError
from models.rl import checkpoint

SIZES = ("subflow_width", "width", "heads", "layers", "context", "logs", "hidden", "cells")
"""Settings that decide which weights a network has."""
CALM: dict[str, Any] = {"warmup": 0, "epsilon": 0.1, "learning_starts": 500}
"""What a network that can act already begins with: the inputs' scale is the one that it was learned
with, and few actions are random (ours)."""


def settings(folder: Path, name: str) -> dict[str, Any]:
    """Settings that a training takes over from the folder it begins with.

    Parameters
    ----------
    folder : Path
        Of a training, online or from logs.
    name : str
        Agent that is to be trained.

    Raises
    ------
    UserError
        When there is no checkpoint, or one of another agent.
    """
    from models.rl import agents

    tree = _read(folder)
    if agents.agent(tree["agent"]).params != agents.agent(name).params:
        raise UserError(f"{folder}: a network of {tree['agent']}, which {name} can't begin with")
    kept = {key: tree["settings"][key] for key in (*SIZES, "env") if key in tree["settings"]}
    known = agents.agent(name).settings().model_fields
    return kept | {key: value for key, value in CALM.items() if key in known}


def put(algorithm: Any, folder: Path) -> None:
    """Give an algorithm before its first step the weights of a folder's last network.

    Raises
    ------
    UserError
        When its network is another one.
    """
    agent: Any = algorithm.learner.agent
    found = _tensors(_read(folder)["network"])
    found |= {f"target.{k.removeprefix('net.')}": v for k, v in found.items()
              if k.startswith("net.")}  # fmt: skip
    state = agent.state_dict()
    wrong = [key for key, value in state.items()
             if key not in found or found[key].shape != value.shape]  # fmt: skip
    if wrong:
        raise UserError(f"{folder}: another network ({wrong[0]}): leave its sizes as they were")
    agent.load_state_dict({key: found[key] for key in state})


def _tensors(tree: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {key: torch.from_numpy(value) for key, value in tree.items()}


def _read(folder: Path) -> dict[str, Any]:
    found = checkpoint.latest(folder)
    if found is None:
        raise UserError(f"{folder}: no checkpoint: name a folder that `cczoo train` wrote into")
    return checkpoint.read(found)
