"""List, show, check and release the models kept in the repository."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from pipelines.output import print_json
from pipelines.sources import MODEL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from export.source import Source
    from features.spec import Feature
    from models.sbd.store import ZooModel
    from models.sbd.table import Windows

EXAMPLE = """examples:
  cczoo zoo show smartsbd-dt
  cczoo zoo reproduced                       # are the models trained here those released?
  cczoo zoo release smartsbd-dt --dry-run    # what models/trained has, through all gates
  cczoo zoo release build/neural/smartsbd-neural --zoo my-zoo"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print the result as JSON")
    shared.add_argument("--zoo", type=Path, help="another zoo than the repository's")
    names = "list|show|verify|prove|reproduced|release|add|docs"
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
    add.add_argument("entries", nargs="+", help="a model's directory, or a function's name")
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
        "names", nargs="+", metavar="NAME", help="trained model, a model's directory, or a function"
    )
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
        help="table with the test set (default: data/processed/sbd.parquet or series.parquet; "
        "without it the models' own samples)",
    )
    release.add_argument("--params", type=Path, help="settings (default: params.yaml)")
    release.add_argument("--dry-run", action="store_true", help="ask the gates, change nothing")
    release.add_argument(
        "--force", metavar="REASON", help="release although a gate refuses; the reason is kept"
    )


def run(args: argparse.Namespace) -> int:
    """Dispatch to the action."""
    from pipelines import prove, zoo_add, zoo_docs, zoo_release, zoo_reproduced, zoo_verify

    actions = {
        "list": _list,
        "show": _show,
        "verify": zoo_verify.run,
        "prove": prove.run,
        "reproduced": zoo_reproduced.run,
        "release": zoo_release.run,
        "add": zoo_add.add,
        "certify": zoo_add.certify,
        "docs": zoo_docs.run,
    }
    return actions[args.action](args)


def open_model(name: str, zoo: Path | None = None) -> ZooModel:
    """A model by zoo name, directory or ``registry:NAME[@ALIAS|/VERSION][?group=GROUP]``.

    What every command takes for a model.

    Parameters
    ----------
    name : str
    zoo : Path, optional
        Another zoo than the repository's.

    Raises
    ------
    UserError
        When there is none, with the nearest name.
    """
    from models.sbd.store import load

    if not name.startswith("registry:"):
        return load(name, zoo)
    from pipelines.registry import fetch_entry

    return load(Path(fetch_entry(name)))


def source_of(model: ZooModel) -> Source:
    """A zoo entry as exporters take it.

    Raises
    ------
    UserError
        When its ``model.json`` isn't a form, or its ``vectors.json`` no stored answers.
    """
    import numpy as np

    from export.document import loads
    from export.source import Source

    meta = model.meta
    form = None
    if "model.json" in meta.files:
        form = loads(model.read("model.json"), str(model.directory / "model.json"))
    vectors = model.read_json("vectors.json")
    try:
        values = np.array(vectors["values"], dtype=np.float64).reshape(-1, len(meta.features))
        probability = np.array(vectors["probability"], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{model.directory}/vectors.json: values and probability of each were expected: "
            "restore it or train again"
        ) from None
    return Source(
        name=meta.name,
        version=meta.version,
        family=meta.family,
        kind=meta.kind,
        features=model.features,
        labels=meta.labels,
        threshold=meta.threshold,
        form=form,
        no_form=meta.no_form,
        onnx=model.read("model.onnx") if "model.onnx" in meta.files else b"",
        values=values,
        probability=probability,
        scaling=meta.scaling,
        feature_settings=meta.feature_settings,
    )


def targets_of(model: ZooModel) -> list[str]:
    """Names of the targets that can carry a zoo entry."""
    from export.targets import carrying

    has = {model.meta.kind} if "model.json" in model.meta.files else set()
    has |= {"float"} if "model.onnx" in model.meta.files else set()
    return carrying(has, len(model.meta.features))


def write_entry(
    name: str,
    estimator: Any,
    features: Sequence[Feature],
    meta: Mapping[str, Any],
    vectors: NDArray[np.float64],
    metrics: Mapping[str, Any],
    card: str,
    *,
    labels: NDArray[np.int64] | None = None,
    test: Windows | None = None,
    reference: bytes | None = None,
    zoo: Path | None = None,
) -> Path:
    """Lower a fitted estimator, convert it to ONNX and keep everything in the zoo.

    Parameters
    ----------
    name : str
        The zoo's name, such as ``smartsbd-dt``.
    estimator : fitted scikit-learn classifier
        Binary; its larger class is SB. Scalers in a ``Pipeline`` and a
        ``CalibratedClassifierCV(ensemble=False)`` are understood.
    features : sequence of Feature
        The columns that it was fitted on, in order.
    meta : mapping
        Fields of :class:`models.sbd.store.Meta` that only training knows: ``family`` at least;
        ``version``, ``data_hash``, ``git_commit``, ``created_by``, ``threshold``,
        ``calibration``, ``accumulation``, ``labels``; ``feature_settings`` where the vectors
        weren't computed with the defaults.
    vectors : float array [n, d]
        Observations, best the whole training table: the loss to integers is measured on all of
        them, and an even sample of their fixed-point values is kept with the estimator's answers.
    metrics : mapping
        For ``metrics.json``.
    card : str
        For ``card.md``.
    labels : int array [n], optional
        True classes of ``vectors``; adds accuracies to the measured loss.
    test : Windows, optional
        Labelled rows that training didn't see, for ``test.json``.
    reference : bytes, optional
        ``reference.json``: :func:`models.sbd.reference.dumps`.
    zoo : Path, optional
        Where to write it, ``models/trained`` by default.

    Returns
    -------
    Path
        The entry's directory.

    Raises
    ------
    UserError
        When ``meta`` has wrong keys or ``vectors`` hold no finite row.
    """
    import numpy as np

    from export.document import dumps
    from export.fixed import to_integers
    from export.lower import NotLowerable, lower
    from export.onnx_file import convert
    from export.onnx_run import predict
    from export.params import WORST_FLOAT_ERROR
    from features.grid import on_grid
    from features.sbd import settings_for
    from features.spec import schema_hash
    from models.sbd import digits, store, testset
    from models.sbd import reference as references
    from models.sbd.params import THRESHOLD
    from pipelines.zoo_entry import answered, final_name, json_file, loss, sample, vectors_file

    pair = tuple(meta.get("labels", ("NSB", "SB")))
    threshold = float(meta.get("threshold", THRESHOLD))
    values = np.asarray(vectors, dtype=np.float64)
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        raise UserError(f"model {name!r}: no row of the training table is finite in all features")
    values = values[finite]
    truth = None if labels is None else np.asarray(labels)[finite]
    probability = answered(estimator, values)
    settings = settings_for(meta.get("family", ""), meta.get("feature_settings", {}))
    onnx = convert(estimator, features, name, (pair[0], pair[1]), settings)
    # Float32 against float64: a kernel machine with a large C sums thousands of large terms.
    float_error = float(np.abs(predict(onnx, values, name) - probability).max())
    if not float_error <= WORST_FLOAT_ERROR:
        raise UserError(
            f"model {name!r}: its ONNX form errs by {float_error:.2g}: use a smaller C or depth"
        )
    kept = on_grid(sample(values), features)
    files = {
        "model.onnx": onnx,
        "metrics.json": json_file(digits.rounded(metrics)),
        "card.md": card.encode(),
        "vectors.json": vectors_file(kept, answered(estimator, kept)),
    }
    described: dict[str, Any] = {
        **meta,
        "name": name,
        "kind": final_name(estimator),
        "features": [f.name for f in features],
        "feature_specs": [asdict(f) for f in features],
        "feature_settings": settings,
        "schema_hash": schema_hash(features, settings),
        "labels": pair,
    }
    try:
        form = lower(estimator, features, (pair[0], pair[1]), threshold)
    except NotLowerable as error:
        described["no_form"] = str(error)
    else:
        files["model.json"] = dumps(form).encode()
        integer_classes = form.evaluate(to_integers(values, features)).classes
        float_classes = (probability > threshold).astype(np.int64)
        described["kind"] = form.kind
        described["scaling"] = loss(float_classes, integer_classes, truth)
    described["scaling"] = {
        **described.get("scaling", {}),
        "float_error": digits.bound(float_error),
    }
    if test is not None and len(test):
        test = digits.stored(test, features)
        columns = [feature.name for feature in features]
        rows = test.matrix(columns)
        answers = {"model.onnx": (predict(onnx, rows, name) > threshold).astype(np.int64)}
        if "model.json" in files:
            answers["model.json"] = form.evaluate(to_integers(rows, features)).classes
        files[testset.FILE] = testset.dump(test, columns, answers)
    if reference is not None:
        files[references.FILE] = reference
    return store.save((zoo or store.TRAINED) / name, described, files).directory


def _list(args: argparse.Namespace) -> int:
    from models.sbd import store

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
        shown = {**model.meta.model_dump(mode="json"), "metrics": model.read_json("metrics.json")}
        print_json({**shown, "costs": json.loads(costs) if costs else None})
    else:
        print(model.read("card.md").decode(), end="")
        costs = model.beside("costs.md")
        if costs:
            print(f"\n{costs.decode()}", end="")
    return 0
