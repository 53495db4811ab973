"""Register what a training left in the zoo: in the MLflow registry, or on disk to be sent later."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.files import file_hash
from data.fleet.selection import selection_of
from models import policies, store
from models.families import FAMILIES, experiment_of, name_of
from models.meta import read_meta
from pipelines import params, tracking
from pipelines.output import print_json
from pipelines.registry import entries, of_policies, outbox
from pipelines.registry.outbox import Training
from pipelines.results import NUMBERS, REGISTERED

EXAMPLE = "example: python -m pipelines.registry.register --sync"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the stage."""
    parser.add_argument("--features", type=Path, help="table the models learned from")
    parser.add_argument("--reports", type=Path, help="result tables of the training")
    parser.add_argument("--headline", type=Path, help="flat JSON of metrics")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--zoo", type=Path, help="entries to register (default: models/trained)")
    parser.add_argument(
        "--certificates",
        type=Path,
        default=Path("reports/verified"),
        help="directory of bundles whose certificates go with their models (default: %(default)s)",
    )
    parser.add_argument("--budget", default="", help="what the training was asked to keep to")
    parser.add_argument("--out", type=Path, help="JSON: name -> registered version")
    parser.add_argument(
        "--offline", action="store_true", help="keep the record on disk, send it with --sync"
    )
    parser.add_argument("--check", action="store_true", help="only see whether the store is there")
    parser.add_argument("--sync", action="store_true", help="send what --offline has kept")


def run(args: argparse.Namespace) -> int:
    """Log one run with parameters, metrics, tables and every model of the zoo."""
    if args.check:
        if not is_offline(args.offline):
            tracking.check_store()
        return 0
    if args.sync:
        return _sync()
    for given, flag in ((args.features, "--features"), (args.headline, "--headline")):
        if given is None:
            raise UserError(f"{flag} is missing (or give --sync alone); {EXAMPLE}")
        if not given.is_file():
            raise UserError(f"{given}: no such file: train first, or correct {flag}")
    offline = is_offline(args.offline)
    if not offline:
        tracking.check_store()
    certificates = read_certificates(args.certificates)
    metrics = NUMBERS.read_at(args.headline)
    results = []
    zoo = args.zoo or store.TRAINED
    for found in by_experiment(zoo).values():
        tags = {name: tags_of(path, certificates, args.budget) for name, path in found.items()}
        trained = training("make repro", found, args.params, metrics, args.features, tags=tags)
        results.append(register(replace(trained, reports=args.reports), offline=offline))
    played = [store.load(zoo / name) for name in policies.kept(zoo)]
    results += [
        register(one, offline=offline) for one in of_policies.trainings("make repro", played)
    ]
    if args.out is not None:
        kept = {
            "run": ", ".join(result["run"] for result in results),
            "versions": {k: v for result in results for k, v in result["versions"].items()},
        }
        REGISTERED.write_at(args.out, kept)
    print_json(results[0] if len(results) == 1 else {"trainings": results})
    return 0


def by_experiment(zoo: Path) -> dict[str, dict[str, Path]]:
    """Models that the registry takes: experiment -> registered name -> directory.

    The registry keeps them as ONNX, which a function's table (nuwa-tanh) doesn't have; policies are
    `pipelines.registry.of_policies`'.
    """
    found: dict[str, dict[str, Path]] = {}
    for name in store.names(zoo):
        model = store.load(zoo / name)
        if "model.onnx" in model.meta.files:
            found.setdefault(experiment_of(model.meta), {})[model.meta.name] = model.directory
    return found


def training(
    run: str,
    entries: Mapping[str, Path],
    settings: Path | None,
    metrics: Mapping[str, float],
    data: Path | str,
    *,
    tags: Mapping[str, Mapping[str, str]] | None = None,
) -> Training:
    """Put together what is registered of a training; nothing else does this.

    Parameters
    ----------
    run : str
        Name of the run.
    entries : mapping
        Registered name -> directory of its entry; all of one family, whose experiment it goes to.
    settings : Path, optional
        The file with the parameters.
    metrics : mapping
        Figures of the training, flat.
    data : Path or str
        The training data, or its hash.
    tags : mapping, optional
        Registered name -> tags of its version; by default, they state no proof and no budget.
    """
    families = {name_of(read_meta(path)) for path in entries.values()}
    if len(families) != 1:
        raise ValueError(f"one family of models was expected, not {sorted(families)}")
    return Training(
        experiment=FAMILIES[families.pop()].experiment,
        run=run,
        params=params.load(settings).model_dump(mode="json"),
        metrics=metrics,
        dataset_hash=data if isinstance(data, str) else file_hash(data),
        entries=entries,
        tags=tags or {name: tags_of(path, {}) for name, path in entries.items()},
        selection={} if isinstance(data, str) else selection(data),
    )


def selection(table: Path) -> dict[str, str]:
    """Describe what a table was selected from; empty if it doesn't come from a store."""
    found = selection_of(table)
    return {} if found is None else found.plain()


def is_offline(flag: bool) -> bool:
    """Whether records stay in the outbox for now: ``--offline``, or ``CCZOO_OFFLINE=1``."""
    return flag or os.environ.get("CCZOO_OFFLINE") == "1"


def send(training: Training, offline: bool) -> dict[str, Any]:
    """Register, and print each new candidate to stderr; returns the same as :func:`register`."""
    result = register(training, offline=is_offline(offline))
    for name, version in result["versions"].items():
        print(f"registered {name} version {version} as @candidate", file=sys.stderr)
    return result


def register(training: Training, *, offline: bool) -> dict[str, Any]:
    """Put a training's record into the outbox and, unless offline, send all records in it.

    A record is on disk before anything is sent: a registration that is killed, or whose server
    goes away, is made good by the next one, or by ``--sync``.

    Returns
    -------
    dict
        The same as from :func:`pipelines.registry.outbox.send`; offline ``run`` and ``versions``
        are empty, and ``waiting`` is the record's directory.
    """
    if not offline:
        with outbox.alone():
            own = outbox.write(training)
            return _send_waiting()[own]
    record = outbox.write(training)
    print(f"kept in {record}: send it with {EXAMPLE.partition(': ')[2]}", file=sys.stderr)
    return {
        "experiment": training.experiment,
        "run": "",
        "versions": {},
        "waiting": str(record),
    }


def _send_waiting() -> dict[Path, dict[str, Any]]:
    """Send every record in the outbox, the oldest first."""
    sent = {}
    for record in outbox.waiting():
        try:
            sent[record] = outbox.send(record)
        except UserError as error:
            raise UserError(f"{error}; the training is kept in {record}") from None
        shutil.rmtree(record)
        for name in sent[record]["removed"]:
            print(f"removed {name}: its registration had been killed", file=sys.stderr)
    return sent


def read_certificates(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Certificates of the bundles below a folder: model hash -> certificate."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*/certificate.json")):
        certificate = json.loads(path.read_text(encoding="utf-8"))
        if "model_hash" in certificate:
            found[certificate["model_hash"]] = certificate
    return found


def tags_of(
    directory: Path, certificates: Mapping[str, Mapping[str, Any]], budget: str = ""
) -> dict[str, str]:
    """Tags of a version that its entry doesn't state: certificate and budget."""
    certificate = certificates.get(entries.model_hash(store.load(directory)))
    tags = {"budget": budget or "none", "certificate": "none"}
    if certificate is not None:
        tags["certificate"] = "valid" if certificate["ok"] else "failed"
        tags["certificate_hash"] = str(certificate.get("certificate_hash", ""))
    return tags


def _sync() -> int:
    tracking.check_store()
    with outbox.alone():
        print_json({"sent": list(_send_waiting().values())})
    return 0


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE)
    add_arguments(command)
    try:
        raise SystemExit(run(command.parse_args()))
    except UserError as mistake:
        print(f"register: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None
