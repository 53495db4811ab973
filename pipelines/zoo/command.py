"""List, show, check and release the models kept in the repository."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from data.errors import UserError
from pipelines.output import print_json
from pipelines.sources import MODEL, open_model

EXAMPLE = """examples:
  cczoo zoo show smartsbd-dt
  cczoo zoo reproduced                       # are the models trained here those released?
  cczoo zoo release smartsbd-dt --dry-run    # what models/trained has, through all gates
  cczoo zoo release build/neural/smartsbd-neural --zoo my-zoo
  cczoo zoo release reports/rl/macc/seed-7   # an agent's best network, as policies
  cczoo zoo register tcco                    # for cczoo promote tcco, registry:tcco@champion"""


SEEDS = 5
SEEDS_HELP = "runs of each scenario that an agent's card shows (default %(default)s; 0: none)"
ACTIONS = {
    "verify": ("pipelines.zoo.verify", "run"),
    "prove": ("pipelines.zoo.prove", "run"),
    "reproduced": ("pipelines.zoo.reproduced", "run"),
    "release": ("pipelines.zoo.release", "run"),
    "add": ("pipelines.zoo.add", "add"),
    "register": ("pipelines.zoo.register", "run"),
    "certify": ("pipelines.zoo.add", "certify"),
    "docs": ("pipelines.zoo.docs", "run"),
}
"""Action -> its module, imported when it is asked for, and function."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print the result as JSON")
    shared.add_argument("--zoo", type=Path, help="another zoo than the repository's")
    names = "list|show|verify|prove|reproduced|release|add|register|docs"
    actions = parser.add_subparsers(dest="action", required=True, metavar=names)

    def action(name: str, text: str, example: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name, parents=[shared], help=text, description=text, epilog=f"example: {example}"
        )

    action("list", "names, kinds and targets", "cczoo zoo list --json")
    show = action("show", "one model's card", "cczoo zoo show smartsbd-dt")
    show.add_argument("model", help=MODEL)
    verify = action(
        "verify",
        "check hashes, stored answers and the stored evaluation",
        "cczoo zoo verify smartsbd-dt",
    )
    verify.add_argument("model", nargs="?", help=f"{MODEL}; all by default")
    prove = action(
        "prove",
        "export to every target that fits and verify each",
        "cczoo zoo prove smartsbd-dt -t c",
    )
    prove.add_argument("model", nargs="?", help="one model or function; all by default")
    reproduced = action(
        "reproduced",
        "compare the models trained here with the released",
        "cczoo zoo reproduced --trained models/trained",
    )
    reproduced.add_argument(
        "--trained", type=Path, help="models trained here (default: models/trained)"
    )
    reproduced.add_argument(
        "--out", type=Path, help="write the verdicts as JSON; then the exit status is always 0"
    )
    _release_arguments(actions, shared)
    add = action(
        "add",
        "take models into another folder than the zoo (--zoo)",
        "cczoo zoo add models/trained/smartsbd-dt nuwa-tanh --zoo my-zoo",
    )
    add.add_argument(
        "entries", nargs="+", help="a model's directory, a function's name, or an agent's training"
    )
    add.add_argument("--seeds", type=int, default=SEEDS, help=SEEDS_HELP)
    register = action(
        "register",
        "keep policies in the MLflow registry, as candidates for promotion",
        "cczoo zoo register reports/rl/macc/seed-7",
    )
    register.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="a policy's name in the zoo, its directory, or the folder of an agent's training",
    )
    register.add_argument("--seeds", type=int, default=SEEDS, help=SEEDS_HELP)
    register.add_argument(
        "--estimate",
        type=Path,
        metavar="FILE",
        help="what cczoo offline estimate --out wrote: refuse a training that doesn't beat what "
        "was logged",
    )
    register.add_argument(
        "--offline", action="store_true", help="keep the record on disk, to be sent later"
    )
    certify = actions.add_parser(
        "certify",
        parents=[shared],
        description="part of a release now: cczoo zoo release",
        epilog="example: cczoo zoo release smartsbd-dt",
    )
    certify.add_argument("model", nargs="?")
    docs = action("docs", "write the documents' tables of it", "cczoo zoo docs --check")
    docs.add_argument("--check", action="store_true", help="only tell what isn't up to date")
    prove.add_argument(
        "-t", "--target", action="append", default=[], help="this target only; may be given again"
    )


def _release_arguments(actions: Any, shared: argparse.ArgumentParser) -> None:
    release = actions.add_parser(
        "release",
        parents=[shared],
        help="put models into the zoo: gates, proof, the next version",
        epilog="example: cczoo zoo release smartsbd-dt smartsbd-neural nuwa-tanh",
    )
    release.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="trained model, a model's directory, a function, or the folder of an agent's training",
    )
    release.add_argument("--seeds", type=int, default=SEEDS, help=SEEDS_HELP)
    release.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="DIR",
        help="where NAMEs were trained to (default: models/trained)",
    )
    release.add_argument(
        "--features",
        type=Path,
        help="data with the test set (default: where make repro leaves it; without it the models' "
        "own samples)",
    )
    release.add_argument("--params", type=Path, help="settings (default: params.yaml)")
    release.add_argument("--dry-run", action="store_true", help="ask the gates, change nothing")
    release.add_argument(
        "--force",
        metavar="REASON",
        help="release although a gate refuses, or again with other figures; the reason is kept",
    )


def run(args: argparse.Namespace) -> int:
    """Dispatch to the action."""
    if args.action in HERE:
        return HERE[args.action](args)
    module, function = ACTIONS[args.action]
    status: int = getattr(importlib.import_module(module), function)(args)
    return status


def _list(args: argparse.Namespace) -> int:
    from export.targets import targets_of
    from models import store

    if args.zoo is not None and not args.zoo.is_dir():
        raise UserError(f"{args.zoo}: no such folder")
    rows: list[dict[str, Any]] = []
    for name in store.folders(args.zoo):
        model = store.load(name, args.zoo)
        meta = model.meta
        rows.append(
            {
                "name": meta.name,
                "kind": meta.kind,
                "version": meta.version,
                "family": meta.family,
                "features": len(meta.features),
                "targets": targets_of(model),
            }
        )
    if args.json:
        print_json(rows)
    else:
        for row in rows:
            fitting = ", ".join(row["targets"])
            print(f"{row['name']:<24} v{row['version']:<4} {row['kind']:<24} {fitting}")
        if not rows:
            print(
                "the zoo is empty: fill it with cczoo zoo release NAME "
                "(or cczoo train sbd ... --zoo FOLDER)",
                file=sys.stderr,
            )
    return 0


def _show(args: argparse.Namespace) -> int:
    model = open_model(args.model, args.zoo)
    if args.json:
        costs = model.beside("costs.json")
        shown = {**model.meta.document(), "metrics": model.read_json("metrics.json")}
        print_json({**shown, "costs": json.loads(costs) if costs else None})
    else:
        print(model.read("card.md").decode(), end="")
        costs = model.beside("costs.md")
        if costs:
            print(f"\n{costs.decode()}", end="")
    return 0


HERE = {"list": _list, "show": _show}
