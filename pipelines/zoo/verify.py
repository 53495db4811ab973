"""Check the entries of the zoo: each is intact, and its stored answers and evaluation hold."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from pipelines.output import print_json

if TYPE_CHECKING:
    from export.source import Source
    from models.store import ZooModel

CERTIFICATE, REPLAY = "certificate.json", "replay.json"


def run(args: argparse.Namespace) -> int:
    """Run ``cczoo zoo verify``; returns 1 if an entry fails."""
    from models import store
    from pipelines.sources import open_model

    reports = []
    for name in [args.model] if args.model else store.folders(args.zoo):
        report: dict[str, Any] = {"name": name, "ok": False}
        try:
            report |= verify_entry(open_model(name, args.zoo))
        except UserError as error:
            if args.model:
                raise
            report["problems"] = [str(error)]
        reports.append(report)
    ok = all(report["ok"] for report in reports)
    if args.json:
        print_json({"ok": ok, "models": reports})
    else:
        for report in reports:
            state = "ok" if report["ok"] else "FAILED"
            print(f"{state:<7} {report['name']:<24} {_summary(report)}".rstrip())
    return 0 if ok else 1


def verify_entry(model: ZooModel) -> dict[str, Any]:
    """Compare stored answers and the stored evaluation with what the entry's files answer now.

    Parameters
    ----------
    model : ZooModel
        The loaded entry: the hashes of its files have been checked.

    Returns
    -------
    dict
        ``ok``, ``problems``, ``vectors``, ``mismatches``; ``integer_disagreements`` if the model
        has an integer form; ``evaluation``, see :func:`evaluate`, None without a stored test set.
    """
    import numpy as np

    from export.fixed import to_integers
    from export.loss import size_of
    from export.onnx.run import decided, predict
    from export.params import tolerance_of
    from export.source import source_of

    if "model.onnx" not in model.meta.files:
        from pipelines.zoo import functions, policies

        report = (policies if policies.is_policy(model) else functions).verify(model)
        problems = report["problems"] + _altered(model)
        return {**report, "evaluation": None, "problems": problems, "ok": not problems}
    source = source_of(model)
    if model.meta.states:
        answers = predict(source.onnx, source.values, model.meta.name)
    else:
        answers = model.answers(source.values)
    error = np.abs(answers - source.probability)
    error = error.reshape(len(source.values), -1).max(axis=1)
    error /= size_of(source.probability, source.output.kind)
    mismatches = int((~(error <= tolerance_of(source.quantization_error, 1e-5))).sum())
    report = {"vectors": len(error), "mismatches": mismatches}
    problems = [f"{mismatches} stored answers differ"] if mismatches else []
    if source.form is not None:
        classes = source.form.evaluate(to_integers(source.values, source.features)).classes
        disagreements = int((classes != decided(source.probability, source.threshold)).sum())
        report["integer_disagreements"] = disagreements
    problems += _altered(model)
    if REPLAY in model.meta.files:
        from pipelines.zoo import policies

        played = policies.verify(model)
        report["decisions"] = played["decisions"]
        problems += played["problems"]
    report["evaluation"] = evaluate(model, source)
    for name, found in (report["evaluation"] or {}).items():
        if not found["low"] <= found["now"] <= found["high"]:
            problems.append(
                f"{name} scores {found['now']:.3f} on the stored test, outside the stored "
                f"[{found['low']:.3f}, {found['high']:.3f}]"
            )
    return {**report, "problems": problems, "ok": not problems}


def _altered(model: ZooModel) -> list[str]:
    """Problems of an entry that isn't intact: what was added to it, or contradicts it."""
    from models import store

    problems = []
    if not model.meta.checksum:
        problems.append("meta.json has no checksum: made by an earlier version, train again")
    known = {*model.meta.files, "meta.json", *store.BESIDE}
    more = sorted(path.name for path in model.directory.iterdir() if path.name not in known)
    if more:
        problems.append(f"files that the entry doesn't name: {', '.join(more)}")
    proof = model.beside(CERTIFICATE)
    if proof is not None:
        from export.source import source_of

        certificate = json.loads(proof)
        if not certificate["ok"]:
            problems.append(f"{CERTIFICATE} says that it was not proved")
        if certificate["model_hash"] != source_of(model).model_hash:
            problems.append(f"{CERTIFICATE} is another model's")
    return problems


def evaluate(model: ZooModel, source: Source) -> dict[str, Any] | None:
    """Run the stored test set again.

    Returns
    -------
    dict or None
        Per file (``model.onnx``, ``model.json``) the stored score (``mean``, ``low``, ``high``, the
        counts of what it is taken over, and ``of``, the name of the count) and the score ``now``.
        None if no test set is stored.
    """
    from export.decisions import of_form, of_onnx
    from models.families import family, find

    # A model that somebody made for features of their own has no family here, and no test.
    name = find(model.meta)
    test = None if name is None else family(name).stored_test(model)
    if test is None:
        return None
    answers = {}
    if source.onnx:
        answers["model.onnx"] = of_onnx(source, test.observations)
    if source.form is not None:
        answers["model.json"] = of_form(source.form, source, test.observations)
    if test.stored.keys() != answers.keys():
        raise UserError(
            f"{model.directory}: its stored test has no accuracies of {', '.join(answers)}: made "
            "by an earlier version, train again"
        )
    return {
        file: {**test.stored[file], "of": test.of, "now": test.score(answer)}
        for file, answer in answers.items()
    }


def _summary(report: dict[str, Any]) -> str:
    if report["problems"]:
        return "; ".join(report["problems"])
    found = report["evaluation"]
    if "decisions" in report:
        return f"{report['decisions']} decisions played again, all the same"
    if "error" in report:
        largest = report["error"].get("largest_error", report["error"]["error_bound"])
        return f"{report['vectors']} inputs; largest error {largest:.2e}"
    if found is None:
        return f"{report['vectors']} answers; no stored test set"
    parts = [f"{report['vectors']} answers"]
    for name, one in found.items():
        interval = f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
        parts.append(f"{name} {one['now']:.3f} of {one[one['of']]} {one['of']}, stored {interval}")
    return "; ".join(parts)
