"""Exports a Python module that needs nothing but Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from export.bundle.certificate import compared
from export.bundle.manifest import Bundle
from export.ir import Verdicts
from export.params import Options, VerifyParams
from export.render import render
from export.source import Source
from export.toolchain.harness import CannotRun, run_command
from export.vectors import Vectors

SUMMARY = "Python module without dependencies, for proxies and simulators"
TEMPLATES: dict[str, str] = {
    "tree": "python_trees.j2",
    "forest": "python_trees.j2",
    "trees": "python_several.j2",
    "linear": "python_linear.j2",
    "lut": "python_lut.j2",
    "mlp": "python_mlp.j2",
    "rbf": "python_rbf.j2",
}
"""Form's kind -> the template of its ``score``."""

_RUN = """
import functools, importlib.util, json, sys
spec = importlib.util.spec_from_file_location("model", sys.argv[1])
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
given = json.load(sys.stdin)
# classify asks for the score that was just computed; of other features it would get theirs.
model.score = functools.lru_cache(maxsize=1)(model.score)
answers = [[model.score(x), model.classify(x)] for x in map(tuple, given["x"])]
json.dump({"answers": answers, "scaled": [model.scale(v) for v in given["values"]]}, sys.stdout)
"""


def emit(source: Source, options: Options) -> dict[str, str]:
    """``<identifier>.py``."""
    form = source.form
    if form is None:
        raise ValueError("the Python target needs a form")
    text = render("python.py.j2", source=source, form=form, scoring=TEMPLATES[form.kind])
    return {f"{source.identifier}.py": text}


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Run it in an interpreter of its own, isolated from this one's packages."""
    if bundle.form is None or vectors is None:
        raise CannotRun("the bundle has no form to compare with")
    (path,) = bundle.files("python")
    given = {"x": vectors.x.tolist(), "values": bundle.values.tolist()}
    command = [sys.executable, "-I", "-S", "-B", "-c", _RUN, str(path.resolve())]
    done = run_command(command, params.timeout_s, json.dumps(given).encode())
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise CannotRun(f"{path.name} failed: {lines[-1] if lines else done.returncode}")
    found = json.loads(done.stdout)
    scores = np.array([answer[0] for answer in found["answers"]], dtype=np.int64)
    classes = np.array([answer[1] for answer in found["answers"]], dtype=np.int64)
    report = compared(bundle.form, vectors.x, Verdicts(classes, scores), vectors.counts)
    wrong = (np.array(found["scaled"]).reshape(bundle.integers.shape) != bundle.integers).any(1)
    report["mismatches"] += int(wrong.sum())
    return report
