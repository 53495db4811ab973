"""``cczoo zoo add`` and ``cczoo zoo certify``: what comes into the zoo, and with which proof."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from data.errors import UserError
from pipelines.output import print_json, progress


def add(args: argparse.Namespace) -> int:
    """Take entries made elsewhere, or functions, into the zoo."""
    from export.functions import FUNCTIONS
    from models.sbd import store
    from pipelines import zoo_functions, zoo_verify

    zoo = args.zoo or store.ZOO
    added = []
    for name in args.entries:
        if name in FUNCTIONS:
            added.append(zoo_functions.write(name, zoo).name)
            continue
        model = store.load(Path(name))
        problems = zoo_verify.verify_entry(model)["problems"]
        if problems:
            raise UserError(f"{name}: not taken into the zoo: {'; '.join(problems)}")
        files = {file: model.read(file) for file in (*model.meta.files, "meta.json")}
        store.replace_directory(zoo / model.meta.name, files)
        added.append(model.meta.name)
    if args.json:
        print_json({"added": added})
    else:
        print(f"{zoo}: {', '.join(added)}")
        print("prove them with: cczoo zoo certify", file=sys.stderr)
    return 0


def certify(args: argparse.Namespace) -> int:
    """Write certificate and costs of each entry."""
    from models.sbd import store
    from pipelines import zoo_costs

    zoo = args.zoo or store.ZOO
    names = [args.model] if args.model else store.names(zoo)
    rows: list[dict[str, Any]] = []
    for name in progress(names, "certify"):
        certificate = zoo_costs.certify(store.load(name, zoo).directory)
        found = {t["target"]: t["vectors"] for t in certificate["targets"]}
        rows.append({"name": name, "ok": certificate["ok"], "vectors": found})
    if args.json:
        print_json(rows)
    else:
        for row in rows:
            told = ", ".join(f"{target} {count}" for target, count in row["vectors"].items())
            print(f"ok      {row['name']:<24} vectors: {told}")
    return 0
