"""Budget, settings and folder that a command line gives a training."""

from __future__ import annotations

import argparse
import hashlib
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from models.policies.identity import code_digest
from models.rl import agents
from pipelines import params as files
from pipelines.rl.budget import Budget

if TYPE_CHECKING:
    from models.rl.params import Run

ELSEWHERE = {"seed", "threads", "learner_threads", "checkpoint_min"}
"""Settings in which trainings of one folder may differ."""


def budgeted(args: argparse.Namespace, changes: dict[str, Any]) -> tuple[Budget, dict[str, Any]]:
    """The budget that ``--params`` has for the agent, and its settings with changes on top.

    Raises
    ------
    UserError
        When the file is wrong, or has none for what is trained.
    """
    if args.params is None:
        return Budget(), changes
    if args.task not in agents.AGENTS:
        raise UserError(f"--params: has settings of {', '.join(agents.AGENTS)} alone: use --set")
    budget = files.load(args.params).agents.of(args.task)
    return budget, agents.merged(budget.settings, changes)


def folder(args: argparse.Namespace, params: Run) -> str:
    """Name of a training's folder; with ``--verdict``, which moves it, one for its settings.

    So what was broken off is gone on with by ``--resume``, and with other settings, or after a
    change of the code that trains and plays, begins anew.
    """
    if args.verdict is None:
        return str(args.task)
    alike = params.model_dump_json(exclude=ELSEWHERE, by_alias=True)
    return f"{args.task}-{hashlib.sha256((alike + code_digest()).encode()).hexdigest()[:12]}"
