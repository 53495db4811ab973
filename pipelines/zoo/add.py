"""``cczoo zoo add``: put entries and functions into a folder of models other than the zoo."""

from __future__ import annotations

import argparse
from pathlib import Path

from data.errors import UserError
from pipelines.output import print_json

INSTEAD = "the zoo is changed by `cczoo zoo release NAME` alone"


def add(args: argparse.Namespace) -> int:
    """Take entries made elsewhere, or functions, into the folder that ``--zoo`` names."""
    from export.functions import FUNCTIONS
    from models import store
    from pipelines.zoo import functions, policies, verify

    if args.zoo is None or args.zoo.resolve() == store.ZOO.resolve():
        raise UserError(f"{INSTEAD}; --zoo DIR takes models into another folder")
    added = []
    for name in args.entries:
        if name in FUNCTIONS:
            added.append(functions.write(name, args.zoo).name)
            continue
        if policies.is_training(Path(name)):
            added += [model.meta.name for model in policies.made(Path(name), args.zoo, args.seeds)]
            continue
        model = store.load(Path(name))
        problems = verify.verify_entry(model)["problems"]
        if problems:
            raise UserError(f"{name}: not taken: {'; '.join(problems)}")
        files = {file: model.read(file) for file in (*model.meta.files, "meta.json")}
        files |= {file: found for file in store.BESIDE if (found := model.beside(file)) is not None}
        store.replace_directory(args.zoo / model.meta.name, files)
        added.append(model.meta.name)
    if args.json:
        print_json({"added": added})
    else:
        print(f"{args.zoo}: {', '.join(added)}")
    return 0


def certify(args: argparse.Namespace) -> int:
    """Refuse the old command: certifying is part of a release now."""
    raise UserError(f"certify is part of a release: {INSTEAD}; `cczoo zoo prove` proves alone")
