"""Proves that a bundle's files answer as the model they were made from.

Two words mean the same thing everywhere: a bundle is *intact* if its files are what its manifest
says, and a target is *proved* if it was built and run and answered as the model on every vector.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError, one_line
from data.place import scratch
from export.budget import Budget
from export.bundle.certificate import certificate_problem, target_hash, write_certificate
from export.bundle.manifest import MANIFEST, Bundle, maker, read_bundle
from export.bundle.plain_files import Broken, read_plain
from export.bundle.reemit import differing, refusal
from export.fixed import to_integers
from export.loss import apart, real_scores
from export.onnx.run import decided
from export.params import VerifyParams, differing_at_most
from export.source import with_scale
from export.targets import target
from export.toolchain import sandbox
from export.toolchain.harness import RUNTIME, CannotRun, Missing
from export.vectors import Vectors, make_vectors


def verify(
    directory: Path,
    params: VerifyParams | None = None,
    budget: Budget | None = None,
    *,
    signers: Path | None = None,
    run_foreign: bool = False,
) -> dict[str, Any]:
    """Find a bundle intact, prove its targets, and write ``certificate.json``.

    Parameters
    ----------
    directory : Path
        Made by ``cczoo export``.
    params : VerifyParams, optional
    budget : Budget, optional
        What the targets may cost.
    signers : Path, optional
        Whose signature is demanded: a public SSH key or a file of allowed signers.
    run_foreign : bool
        Run also targets that aren't what this cczoo emits, in a sandbox. They are never proved.

    Returns
    -------
    dict
        ``ok`` (all files are emitted here, nothing differs, everything ran, the budget is met),
        ``name``, ``model_hash``, ``schema_hash``, ``made_by``, ``signer`` (None if none was
        demanded), ``problems`` (what is wrong with the bundle itself), ``budget`` (None, or
        as :meth:`export.budget.Budget.judge` returns it) and ``targets``: per target ``target``,
        ``vectors``, ``mismatches``, ``target_hash`` and what the target measured (``compiler``,
        ``ns_per_decision``, ``object_bytes``, ``tolerance`` ...); ``error`` if it couldn't be
        run, ``foreign`` (file names) if it isn't what is emitted here.

    Raises
    ------
    UserError
        When the directory isn't a bundle, or ``run_foreign`` is asked for and there is no
        sandbox.
    """
    params = params or VerifyParams()
    if run_foreign and (missing := sandbox.why_not()):
        raise UserError(f"--run-foreign: {missing}")
    try:
        return _judged(directory, params, budget, signers, run_foreign)
    except Broken as error:
        # A certificate that still said ok would outlive what it was given for.
        return _refused(directory, [str(error)])
    except UserError:
        raise
    except Exception as error:
        # What a stranger wrote can be wrong in ways that nobody has thought of.
        return _refused(directory, [one_line(f"can't be verified: {_summary(error)}")])


def _judged(
    directory: Path,
    params: VerifyParams,
    budget: Budget | None,
    signers: Path | None,
    run_foreign: bool,
) -> dict[str, Any]:
    bundle = read_bundle(directory, signers)
    foreign = differing(bundle)
    problems = _stored_answers(bundle)
    if foreign and not run_foreign:
        # Nothing of such a bundle is run, not even what is as it is emitted here.
        return _refused(directory, [refusal(bundle, f) for fs in foreign.values() for f in fs])
    stale = certificate_problem(directory, bundle.manifest_bytes)
    problems += [stale] if stale else []
    problems += [f"{name}: foreign code, run in a sandbox: not proved" for name in foreign]
    if not bundle.manifest["targets"]:
        problems.append("no targets: nothing was proved: export again with -t")
    vectors = None
    if bundle.form is not None:
        vectors = make_vectors(bundle.form, bundle.integers, params.random, params.seed)
    with scratch("bundle") as held:
        # Built from what was read and compared, whatever happens to the directory meanwhile.
        copy = bundle.copied(held / "bundle")
        reports = [
            _prove(name, copy, vectors, params, foreign.get(name, []))
            for name in bundle.manifest["targets"]
        ]
    ran = [r for r in reports if "missing" not in r]
    ok = not problems and all(not r["mismatches"] and "error" not in r for r in ran)
    judged = None if budget is None else budget.judge(reports)
    ok = ok and (judged is None or judged["met"])
    report = {
        "ok": ok and bool(ran),
        "name": bundle.manifest["name"],
        "model_hash": bundle.manifest["model_hash"],
        "schema_hash": bundle.manifest["schema_hash"],
        "made_by": maker(bundle.manifest),
        "signer": bundle.signer,
        "problems": problems,
        "unproved": [r["target"] for r in reports if "missing" in r],
        "budget": judged,
        "targets": reports,
    }
    write_certificate(directory, bundle.manifest_bytes, report)
    return report


def _refused(directory: Path, problems: list[str]) -> dict[str, Any]:
    """A report on a bundle of which nothing was run, and its certificate."""
    report = {"ok": False, "problems": problems, "unproved": [], "budget": None, "targets": []}
    try:
        manifest = read_plain(directory / MANIFEST)
    except (OSError, Broken):
        return report
    write_certificate(directory, manifest, report)
    return report


def _prove(
    name: str,
    bundle: Bundle,
    vectors: Vectors | None,
    params: VerifyParams,
    foreign: list[str],
) -> dict[str, Any]:
    report: dict[str, Any] = {"target": name, "vectors": 0, "mismatches": 0}
    report["target_hash"] = target_hash(bundle.files(name))
    if foreign:
        report["foreign"] = foreign
        if not getattr(target(name), "CONFINABLE", True):
            return report | {"error": "code of others is never loaded into this kernel"}
    with scratch("verify") as work:
        seen = (bundle.directory, RUNTIME)
        box = sandbox.confined(work, seen) if foreign else contextlib.nullcontext()
        try:
            with box:
                return report | target(name).prove(bundle, vectors, params, work)
        except Missing as error:
            return report | {"missing": str(error)}
        except (CannotRun, UserError) as error:
            return report | {"error": one_line(str(error))}
        except Exception as error:
            # What a stranger's program answers need not even be answers.
            return report | {"error": one_line(f"its answers can't be read: {_summary(error)}")}


def _summary(error: Exception) -> str:
    return f"{type(error).__name__} {error}"


def _stored_answers(bundle: Bundle) -> list[str]:
    """The manifest's vectors must be scaled and answered as its own model does."""
    problems = []
    if (to_integers(bundle.values, bundle.features) != bundle.integers).any():
        problems.append("stored vectors: the integers aren't the scaled values")
    if bundle.output != with_scale(bundle.output.model_copy(update={"scale": None}), bundle.form):
        problems.append("output.scale: isn't what one unit is in the model's own form")
    rows = bundle.manifest["vectors"]
    classes = np.array([row["class"] for row in rows], dtype=np.int64)
    unlike_float = 0
    if rows:
        unlike_float = int((decided(bundle.probability, bundle.threshold) != classes).sum())
    if bundle.form is None and unlike_float:
        problems.append(f"stored vectors: {unlike_float} classes aren't those of the probability")
    if bundle.form is not None:
        one = bundle.form.outputs == 1 and len(bundle.form.labels) == 2
        if one and bundle.probability.ndim != 1:
            return [*problems, "stored vectors: one probability each was expected"]
        int8 = bool(bundle.manifest["options"].get("int8"))
        if bundle.output.kind == "scores":
            scores = real_scores(bundle.form, bundle.integers)
            unlike_float = len(apart(scores, bundle.probability))
        if "onnx" in bundle.manifest["targets"] and unlike_float > differing_at_most(
            len(rows), int8
        ):
            problems.append(f"stored vectors: {unlike_float} probabilities decide otherwise")
        answers = bundle.form.evaluate(bundle.integers)
        try:
            scores = np.array([row["score"] for row in rows], dtype=np.int64)
            unlike = scores.reshape(answers.scores.shape) != answers.scores
        except (KeyError, TypeError, ValueError):
            return [*problems, "stored vectors: a score isn't there for every output"]
        unlike = unlike.reshape(len(rows), bundle.form.outputs)
        wrong = (classes != answers.classes) | unlike.any(axis=1)
        if wrong.any():
            problems.append(f"stored vectors: {int(wrong.sum())} answers aren't the model's")
    return problems
