"""Register what a training left in the zoo: in the MLflow registry, or on disk to be sent later."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.files import file_hash, write_text
from models import store
from pipelines import params, tracking
from pipelines.output import print_json
from pipelines.registry import outbox
from pipelines.registry.outbox import Training

if TYPE_CHECKING:
    from pipelines.sbd.job import Job

EXPERIMENT = "smartsbd"
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
    zoo = args.zoo or store.TRAINED
    found = [store.load(zoo / name) for name in store.names(zoo)]
    # MLflow keeps models as ONNX: a function's table (nuwa-tanh) has none.
    models = [model for model in found if "model.onnx" in model.meta.files]
    entries = {model.meta.name: model.directory for model in models}
    certificates = read_certificates(args.certificates)
    training = Training(
        experiment=EXPERIMENT,
        run="make repro",
        params=params.load(args.params).model_dump(mode="json"),
        metrics=json.loads(args.headline.read_text(encoding="utf-8")),
        dataset_hash=file_hash(args.features),
        entries=entries,
        tags={name: tags_of(path, certificates, args.budget) for name, path in entries.items()},
        reports=args.reports,
    )
    result = register(training, offline=offline)
    if args.out is not None:
        kept = {"run": result["run"], "versions": result["versions"]}
        write_text(args.out, json.dumps(kept, indent=1) + "\n")
    print_json(result)
    return 0


def is_offline(flag: bool) -> bool:
    """Whether records are kept to be sent later: ``--offline``, or ``CCZOO_OFFLINE=1``."""
    return flag or os.environ.get("CCZOO_OFFLINE") == "1"


def from_training(
    job: Job, names: Sequence[str], settings: Path | None, offline: bool
) -> dict[str, Any]:
    """Register the entries that ``cczoo train sbd`` has written; returns as :func:`register`."""
    entries = {name: store.load(name, job.zoo).directory for name in names}
    training = Training(
        experiment=EXPERIMENT,
        run="cczoo train sbd",
        params=params.load(settings).model_dump(mode="json"),
        metrics=job.read("headline.json"),
        dataset_hash=file_hash(job.features),
        entries=entries,
        tags={name: tags_of(path, {}) for name, path in entries.items()},
        reports=job.out,
    )
    return _told(register(training, offline=is_offline(offline)))


def from_budget(job: Job, budget: str, settings: Path | None, offline: bool) -> dict[str, Any]:
    """Register what ``cczoo train sbd --budget`` chose; returns as :func:`register`."""
    model = store.load(job.out / "model")
    name, found = model.meta.name, model.read_json("metrics.json")
    metrics = {f"cost.{key}": value for key, value in found["costs"].items()}
    training = Training(
        experiment=EXPERIMENT,
        run=f"cczoo train sbd --budget {budget}",
        params=params.load(settings).model_dump(mode="json"),
        metrics={**metrics, "accuracy": found["accuracy"]["mean"]},
        dataset_hash=file_hash(job.features),
        entries={name: model.directory},
        tags={name: tags_of(model.directory, {}, budget)},
    )
    return _told(register(training, offline=is_offline(offline)))


def from_groups(
    job: Job, result: Mapping[str, Any], settings: Path | None, offline: bool
) -> dict[str, Any]:
    """Register what ``cczoo train sbd --groups`` kept, and point the other groups to the pooled.

    Parameters
    ----------
    job : Job
    result : mapping
        Content of ``groups.json``.
    settings : Path, optional
        The file with the parameters.
    offline : bool
        As in :func:`register`, whose result is returned.
    """
    pooled, rows = result["model"], result["groups"]
    own = {row["registered"]: row for row in rows if row["decision"] == "own"}
    entries = {name: store.load(name, job.zoo).directory for name in (pooled, *own)}
    tags = {name: tags_of(path, {}) for name, path in entries.items()}
    for name, row in own.items():
        tags[name]["group"] = json.dumps(row["values"])
    training = Training(
        experiment=EXPERIMENT,
        run=f"cczoo train sbd --groups {','.join(result['columns'])}",
        params=params.load(settings).model_dump(mode="json"),
        metrics={f"groups.{k}": float(v) for k, v in result["counts"].items()},
        dataset_hash=result["data_hash"],
        entries=entries,
        tags=tags,
        pooled=pooled,
        pointed=tuple(row["registered"] for row in rows if row["decision"] == "pooled"),
    )
    made = register(training, offline=is_offline(offline))
    if made["versions"]:
        print(f"registered {len(made['versions'])} versions as @candidate", file=sys.stderr)
    return made


def _told(result: dict[str, Any]) -> dict[str, Any]:
    for name, version in result["versions"].items():
        print(f"registered {name} version {version} as @candidate", file=sys.stderr)
    return result


def register(training: Training, *, offline: bool) -> dict[str, Any]:
    """Keep a training's record and, unless offline, send it and those that wait.

    A record stands on disk before anything is sent: a registration that is killed, or whose server
    goes away, is made good by the next one, or by ``--sync``.

    Returns
    -------
    dict
        As :func:`pipelines.registry.outbox.send`; offline ``run`` and ``versions`` are empty, and
        ``waiting`` is the record's directory.
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
    """Send every record, oldest first."""
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
    """Model hash -> certificate, of the bundles below a folder."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*/certificate.json")):
        certificate = json.loads(path.read_text(encoding="utf-8"))
        if "model_hash" in certificate:
            found[certificate["model_hash"]] = certificate
    return found


def tags_of(
    directory: Path, certificates: Mapping[str, Mapping[str, Any]], budget: str = ""
) -> dict[str, str]:
    """Tags of a version that its entry doesn't say: certificate and budget."""
    from export.source import source_of

    certificate = certificates.get(source_of(store.load(directory)).model_hash)
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
