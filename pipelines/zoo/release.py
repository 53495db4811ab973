"""``cczoo zoo release``: the only way into the zoo, through gates and a proof."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError, unknown_name
from data.place import everything, scratch
from pipelines.output import print_json, progress

if TYPE_CHECKING:
    from models.store import ZooModel
    from pipelines.params import Params


@dataclass(frozen=True)
class Released:
    """The entry that a candidate follows; without model if there is none or it can't be read."""

    version: int
    model: ZooModel | None
    problem: str = ""


def run(args: argparse.Namespace) -> int:
    """Release each name; returns 1 if one is refused."""
    from models import store
    from pipelines import params
    from pipelines.zoo import docs

    zoo = args.zoo or store.ZOO
    path = args.params or (Path("params.yaml") if Path("params.yaml").is_file() else None)
    settings = params.load(path)
    results = []
    with scratch("release") as held:
        # Each in a folder of its own: two trainings of an agent have entries of the same names.
        each = [candidates_of(n, args, held / str(i)) for i, n in enumerate(args.names)]
        candidates = [one for found in each for one in found]
        for model in progress(candidates, "releasing"):
            results.append(release(model, zoo, settings, args))
            if not args.json:
                _print(results[-1])
    done = [row["name"] for row in results if row["ok"]]
    if done and not args.dry_run and zoo.resolve() == store.ZOO.resolve():
        for document in docs.refresh(zoo):
            print(f"{document}: its table is made anew", file=sys.stderr)
    if args.json:
        print_json({"ok": len(done) == len(results), "models": results})
    return 0 if len(done) == len(results) else 1


def candidates_of(name: str, args: argparse.Namespace, held: Path) -> list[ZooModel]:
    """Find what is to be released; of a training's folder a policy for each kind of its parts."""
    from pipelines.zoo import policies

    if os.sep in name and policies.is_training(Path(name)):
        return policies.made(Path(name), held, args.seeds)
    return [candidate(name, args, held)]


def candidate(name: str, args: argparse.Namespace, held: Path) -> ZooModel:
    """Find what is to be released: a function, a model's directory, or a name below ``--from``.

    Raises
    ------
    UserError
        When there is none, or its own files contradict each other.
    """
    from export.functions import FUNCTIONS
    from models import store
    from pipelines.zoo import functions, verify

    folder = args.source or store.TRAINED
    if os.sep in name:
        model = store.load(Path(name))
    elif name in FUNCTIONS:
        model = store.load(functions.write(name, held))
    elif (folder / name / "meta.json").is_file():
        model = store.load(folder / name)
    else:
        known = store.names(folder)
        if not known:
            raise UserError(f"{folder}: no models there: make repro, or give --from DIR")
        raise unknown_name("trained model", name, [*known, *FUNCTIONS])
    problems = verify.verify_entry(model)["problems"]
    if problems:
        raise UserError(f"{name}: not taken into the zoo: {'; '.join(problems)}")
    return model


def release(
    model: ZooModel, zoo: Path, settings: Params, args: argparse.Namespace
) -> dict[str, Any]:
    """Ask the gates, prove, and write the entry under the next version.

    Returns
    -------
    dict
        ``ok``, ``name``, ``from`` and ``to`` (versions), ``gates``, ``problems``.
    """
    from pipelines.zoo import certify

    name = model.meta.name
    before = released(zoo / name)
    to = str(before.version + 1)
    result: dict[str, Any] = {"ok": False, "name": name, "to": to, "dry_run": args.dry_run}
    result |= {"from": str(before.version or ""), "gates": {}, "problems": []}
    if before.model is not None and _same(before.model, model) and not args.force:
        message = f"nothing to release: version {before.version} is the same model"
        return result | {"problems": [message]}
    if before.problem and not args.force:
        message = f"{before.problem}; --force REASON releases without comparing with it"
        return result | {"problems": [message]}
    findings = _judged(model, before.model, settings, args)
    result["gates"] = {gate: {"passed": f.passed, "reason": f.reason} for gate, f in findings}
    refused = [f"{gate}: {f.reason}" for gate, f in findings if f.passed is False]
    if refused and not args.force:
        return result | {"problems": refused}
    if args.dry_run:
        return result | {"ok": True}
    _write(model, zoo, result, args.force, certify.BENCH)
    return result | {"ok": True}


def _same(before: ZooModel, model: ZooModel) -> bool:
    """Whether there is nothing new to release."""
    from pipelines.zoo import policies
    from pipelines.zoo.reproduced import compare

    if policies.is_policy(model) and policies.is_policy(before):
        return policies.same(before, model)
    return compare(before, model).verdict == "identical"


def released(directory: Path) -> Released:
    """The entry that is in the zoo, as far as this version of cczoo can read it."""
    from models import store

    path = directory / "meta.json"
    if not path.is_file():
        return Released(0, None)
    try:
        version = int(json.loads(path.read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path}: no version in it: restore it (git checkout)") from None
    try:
        return Released(version, store.load(directory))
    except UserError as error:
        return Released(version, None, str(error))


def _judged(
    model: ZooModel, champion: ZooModel | None, settings: Params, args: argparse.Namespace
) -> list[tuple[str, Any]]:
    from pipelines import gates
    from pipelines.gates.comparison import Comparison

    comparison = Comparison(
        name=model.meta.name,
        candidate=model,
        champion=champion,
        data=args.features,
        settings_of=settings.models.of,
        only={},
    )
    return list(gates.judge(comparison, settings.promotion.gates).items())


def _write(
    model: ZooModel, zoo: Path, result: dict[str, Any], reason: str | None, bench: Path
) -> None:
    """Seal the entry under its new version, prove it, and move it into place whole."""
    from export.description import json_file
    from models import store
    from pipelines.registry import owner
    from pipelines.zoo import certify, policies

    name = model.meta.name
    meta = model.meta.model_dump(exclude={"files", "checksum"}) | {"version": result["to"]}
    files = {file: model.read(file) for file in model.meta.files if file not in store.BESIDE}
    with scratch("release") as held:
        entry = store.save(held / name, meta, files)
        files = {file: entry.read(file) for file in (*entry.meta.files, "meta.json")}
        policy = policies.is_policy(entry)
        files |= policies.measured(entry) if policy else certify.measured(entry, bench)
    record = {key: result[key] for key in ("name", "from", "to", "gates")}
    files["release.json"] = json_file({**record, "when": owner.now(), "forced": reason or ""})
    # With a reason all that is there is replaced: it may not be readable as an entry any more.
    store.replace_directory(zoo / name, files, everything if reason else store.own_files)


def _print(result: dict[str, Any]) -> None:
    from pipelines.gates.outcome import print_gates, print_version

    print_gates(result["gates"])
    for problem in result["problems"]:
        print(f"{result['name']}: refused: {problem}", file=sys.stderr)
    if result["ok"]:
        print_version(result, "released")
