"""Models that the exporters are compared on, and what Python's own runtimes make of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rebuild
from sklearn.tree import DecisionTreeClassifier

from export.document import loads
from export.fixed import Q16, limits
from export.forms.forest import Forest
from export.forms.tree import Tree
from export.lower import lower
from export.vectors import make_vectors, timing_rows
from features.spec import Feature

ZOO = Path(__file__).parents[2] / "models" / "zoo"
DEPTHS = (6, 10, 14)
COLUMNS = 18
SPECS = tuple(Feature(f"f{i}", "", -30000.0, 30000.0, 1, "benchmark", "") for i in range(COLUMNS))


@dataclass(frozen=True)
class Case:
    """A model and the rows that everyone is asked about.

    Attributes
    ----------
    title : str
    form : Tree or Forest
        The source model.
    dtype : str
        Smallest C type of emlearn's that holds the features' ranges.
    rows : int64 array [n, d]
        Timed rows (even over all leaves), random rows in range, rows around thresholds.
    meant : int64 array [n]
        The source model's classes.
    """

    title: str
    form: Tree | Forest
    dtype: str
    rows: np.ndarray
    meant: np.ndarray

    @property
    def columns(self) -> int:
        """Number of features."""
        return len(self.form.features)


def cases(quick: bool, random_rows: int, timed_rows: int) -> Iterator[Case]:
    """The zoo's tree and forest and synthetic trees."""
    for name in ("smartsbd-dt",) if quick else ("smartsbd-dt", "smartsbd-rf"):
        form = loads((ZOO / name / "model.json").read_bytes(), name)
        yield _case(name, form, random_rows, timed_rows)
    for depth in DEPTHS[:2] if quick else DEPTHS:
        form = lower(_synthetic(depth), SPECS)
        yield _case(f"synthetic tree of depth {depth}", form, random_rows, timed_rows)


def _synthetic(depth: int) -> DecisionTreeClassifier:
    """A tree over integers within 16 bits, whose class many features decide."""
    rng = np.random.default_rng(1)
    x = np.clip(np.round(rng.normal(0, 8000, (20_000, COLUMNS))), -30000, 30000)
    score = x[:, 0] + x[:, 1] * np.sin(x[:, 2] / 6000) + 0.5 * np.abs(x[:, 3]) - 0.3 * x[:, 4]
    y = (score + rng.normal(0, 3000, len(x)) > 0).astype(int)
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x, y)


def _case(title: str, form: Any, random_rows: int, timed_rows: int) -> Case:
    low, high = limits(form.features)
    rng = np.random.default_rng(2)
    shape = (random_rows, len(form.features))
    made = make_vectors(form, np.zeros((0, shape[1]), dtype=np.int64), 0, 3)
    near = made.x[-made.counts["thresholds"] - made.counts["leaves"] :][: made.counts["thresholds"]]
    within = ((near >= low) & (near <= high)).all(axis=1)
    parts = [
        timing_rows(form, 4)[:timed_rows],
        rng.integers(low, high, shape, endpoint=True),
        near[within],
    ]
    rows = np.concatenate([np.clip(part, low, high) for part in parts])
    narrow = low.min() >= -(1 << 15) and high.max() < 1 << 15
    meant = form.evaluate(rows).classes
    return Case(title, form, "int16_t" if narrow else "int32_t", rows, meant)


def plain(form: Tree | Forest) -> list[dict[str, list]]:
    """Trees in numbers; between two integers a threshold lies in the middle, as trained ones do."""
    found = []
    for nodes in form.trees:
        feature, value, right = nodes.arrays
        inner = feature >= 0
        found.append(
            {
                "left": np.where(inner, np.arange(len(nodes)) + 1, -1).tolist(),
                "right": np.where(inner, right, -1).tolist(),
                "feature": feature.tolist(),
                "threshold": np.where(inner, value + 0.5, -2.0).tolist(),
                "p": np.where(inner, 0.5, value / Q16).tolist(),
            }
        )
    return found


def in_python(
    case: Case, judged: Callable[[np.ndarray], dict[str, int]]
) -> dict[str, dict[str, Any]]:
    """ONNX Runtime and scikit-learn, asked from Python with one row at a time."""
    import onnxruntime

    from export.onnx.file import convert

    forest = rebuild.forest(plain(case.form), case.columns)
    alone = forest.estimators_[0] if len(case.form.trees) == 1 else forest
    with warnings.catch_warnings():
        # Rebuilt trees have no impurities, of which nobody here needs importances.
        warnings.simplefilter("ignore", RuntimeWarning)
        content = convert(alone, case.form.features, "peer", ("NSB", "SB"), {})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def onnx(x: np.ndarray) -> np.ndarray:
        return session.run(None, {"features": x})[0]

    floats = case.rows.astype(np.float32)
    batch = _best_ns([floats[:4096]] * 5, onnx) / 4096
    size = {"bytes": len(content)}
    ours = judged((onnx(floats) > 0.5).astype(int))
    rows = [floats[i : i + 1] for i in range(300)]
    return {
        "ONNX Runtime, one row": {"ns": _best_ns(rows, onnx), **size, **ours},
        "ONNX Runtime, 4096 rows": {"ns": batch, **size, **ours},
        "scikit-learn, one row": {
            "ns": _best_ns(rows[:40], alone.predict),
            **judged(alone.predict(case.rows.astype(np.float64))),
        },
    }


def _best_ns(inputs: list[np.ndarray], run: Callable[[np.ndarray], Any]) -> float:
    best = 1e300
    for x in inputs:
        start = time.perf_counter_ns()
        run(x)
        best = min(best, time.perf_counter_ns() - start)
    return float(best)
