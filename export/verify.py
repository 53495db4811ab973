"""Proves that a bundle's files answer as the model they were made from."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from export.budget import Budget
from export.certificate import certificate_problem, target_hash, write_certificate
from export.fixed import to_integers
from export.harness import CannotRun, Missing
from export.manifest import MANIFEST, Broken, Bundle, read_bundle
from export.params import VerifyParams
from export.targets import TARGETS, target
from export.vectors import Vectors, make_vectors


def verify(
    directory: Path, params: VerifyParams | None = None, budget: Budget | None = None
) -> dict[str, Any]:
    """Check a bundle and write its ``certificate.json``.

    Parameters
    ----------
    directory : Path
        Made by ``cczoo export``.
    params : VerifyParams, optional
    budget : Budget, optional
        What the targets may cost.

    Returns
    -------
    dict
        ``ok`` (nothing differs, everything ran, the budget is met), ``name``, ``model_hash``,
        ``schema_hash``, ``problems`` (what is wrong with the bundle itself), ``budget`` (None, or
        as :meth:`export.budget.Budget.judge` says) and ``targets``: per target ``target``,
        ``vectors``, ``mismatches``, ``target_hash`` and what the target measured (``compiler``,
        ``ns_per_decision``, ``object_bytes``, ``tolerance`` ...); ``error`` where it couldn't be
        run.

    Raises
    ------
    UserError
        When the directory isn't a bundle.
    """
    params = params or VerifyParams()
    try:
        bundle = read_bundle(directory)
    except Broken as error:
        # A certificate that still said ok would outlive what it was given for.
        report = {"ok": False, "problems": [str(error)], "budget": None, "targets": []}
        write_certificate(directory, (directory / MANIFEST).read_bytes(), report)
        return report
    manifest = (directory / MANIFEST).read_bytes()
    problems = _stored_answers(bundle)
    stale = certificate_problem(directory, manifest)
    problems += [stale] if stale else []
    vectors = None
    if bundle.form is not None:
        vectors = make_vectors(bundle.form, bundle.integers, params.random, params.seed)
    reports = [_check(name, bundle, vectors, params) for name in bundle.manifest["targets"]]
    ran = [r for r in reports if "missing" not in r]
    ok = not problems and all(not r["mismatches"] and "error" not in r for r in ran)
    judged = None if budget is None else budget.judge(reports)
    ok = ok and (judged is None or judged["met"])
    report = {
        "ok": ok and bool(ran),
        "name": bundle.manifest["name"],
        "model_hash": bundle.manifest["model_hash"],
        "schema_hash": bundle.manifest["schema_hash"],
        "problems": problems,
        "unproved": [r["target"] for r in reports if "missing" in r],
        "budget": judged,
        "targets": reports,
    }
    write_certificate(directory, manifest, report)
    return report


def _check(
    name: str, bundle: Bundle, vectors: Vectors | None, params: VerifyParams
) -> dict[str, Any]:
    report: dict[str, Any] = {"target": name, "vectors": 0, "mismatches": 0}
    if name not in TARGETS:
        return report | {"error": f"this cczoo has no target {name!r}"}
    report["target_hash"] = target_hash(bundle.files(name))
    with tempfile.TemporaryDirectory(prefix="cczoo-verify-") as work:
        try:
            return report | target(name).check(bundle, vectors, params, Path(work))
        except Missing as error:
            return report | {"missing": str(error)}
        except (CannotRun, UserError) as error:
            return report | {"error": str(error)}


def _stored_answers(bundle: Bundle) -> list[str]:
    """The manifest's vectors must be scaled and answered as its own model does."""
    problems = []
    if (to_integers(bundle.values, bundle.features) != bundle.integers).any():
        problems.append("stored vectors: the integers aren't the scaled values")
    if bundle.form is not None:
        answers = bundle.form.evaluate(bundle.integers)
        rows = bundle.manifest["vectors"]
        classes = np.array([row["class"] for row in rows], dtype=np.int64)
        scores = np.array([row["score"] for row in rows], dtype=np.int64)
        unlike = scores.reshape(answers.scores.shape) != answers.scores
        unlike = unlike.reshape(len(rows), bundle.form.outputs)
        wrong = (classes != answers.classes) | unlike.any(axis=1)
        if wrong.any():
            problems.append(f"stored vectors: {int(wrong.sum())} answers aren't the model's")
    return problems
