"""``cczoo zoo register``: keep policies in the MLflow registry, as candidates for promotion."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.place import scratch
from pipelines.output import print_json

if TYPE_CHECKING:
    from models.store import ZooModel


def run(args: argparse.Namespace) -> int:
    """Register each name's policies as new versions, each with its ``@candidate``.

    Returns 1 if an estimate from logs says that a training doesn't beat what was logged.
    """
    from data.command_line import made_by
    from pipelines import tracking
    from pipelines.offline import identity
    from pipelines.registry import of_policies, register

    tags = {}
    if args.estimate is not None:
        figures = _estimate(args)
        if not figures["verdict"]["beats"]:
            why = figures["verdict"]["reason"]
            print(f"refused: {args.names[0]} doesn't beat what was logged: {why}", file=sys.stderr)
            return 1
        tags = identity.tags(figures)
    if not register.is_offline(args.offline):
        tracking.check_store()
    with scratch("register") as held:
        # Each in a folder of its own: two trainings of an agent have entries of the same names.
        each = [entries_of(n, args, held / str(i)) for i, n in enumerate(args.names)]
        found = [model for one in each for model in one]
        records = of_policies.trainings(made_by(), found, tags)
        sent = [register.send(one, args.offline) for one in records]
    versions = {name: version for one in sent for name, version in one["versions"].items()}
    if args.json:
        print_json({"registered": versions, "waiting": [one["waiting"] for one in sent
                                                        if "waiting" in one]})  # fmt: skip
    return 0


def _estimate(args: argparse.Namespace) -> dict[str, Any]:
    """Figures of the one training that is named."""
    from pipelines.offline import identity
    from pipelines.zoo import policies

    if len(args.names) != 1 or not policies.is_training(Path(args.names[0])):
        raise UserError("--estimate: name the one training's folder that it is of")
    return identity.read(Path(args.names[0]), args.estimate)


def entries_of(name: str, args: argparse.Namespace, held: Path) -> list[ZooModel]:
    """Policies that a name stands for: an entry, or those of a training's best network.

    Raises
    ------
    UserError
        When there is none, it is no policy, or it isn't what it says.
    """
    from pipelines.sources import open_model
    from pipelines.zoo import policies, verify

    if os.sep in name and policies.is_training(Path(name)):
        return policies.made(Path(name), held, args.seeds)
    model = open_model(name, args.zoo)
    if not policies.is_policy(model):
        raise UserError(
            f"{name}: no policy: its training registers a model of {model.meta.family!r} itself "
            "(cczoo train, docs/registry.md)"
        )
    problems = verify.verify_entry(model)["problems"]
    if problems:
        raise UserError(f"{name}: not registered: {'; '.join(problems)}")
    return [model]
