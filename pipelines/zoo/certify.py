"""Certificate and costs of an entry: it is exported, and each target is proved and measured."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.description import json_file

if TYPE_CHECKING:
    from models.store import ZooModel

TARGETS = ("c", "json", "lut", "onnx")
"""Targets that are proved when an entry is made; `cczoo zoo prove` proves all others too."""
HEADING = "## What a decision costs\n"
ROUNDS, CALLS = 5, 40
BENCH = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "prove.json"


def measured(model: ZooModel, bench: Path = BENCH) -> dict[str, bytes]:
    """Prove an entry on the targets that carry it, and measure it on this machine.

    Parameters
    ----------
    model : ZooModel
        The loaded entry, of which nothing is changed.
    bench : Path
        Results of `benchmarks/prove.py`; they may be missing.

    Returns
    -------
    dict
        Files to stand beside the entry: ``certificate.json``, the bundle's own
        (docs/certificate.md); ``costs.json`` with a row per target, ``measured`` "here" for what
        this machine found now and "bench" for what ``make bench`` found; ``costs.md``, the same
        for people.

    Raises
    ------
    UserError
        When a target doesn't answer as the model.
    """
    from export.proof import prove
    from export.source import source_of
    from export.targets import fitting

    source = source_of(model)
    # A table of a policy is another model, with a loss of its own: only functions are tables.
    targets = [t for t in fitting(source) if t in TARGETS and (t != "lut" or source.kind == "lut")]
    command = f"cczoo export {model.meta.name} {' '.join(f'-t {t}' for t in targets)}"
    proof = prove(source, targets, command)
    report = proof.report
    if not report["ok"]:
        wrong = [f"{t['target']}: {t.get('error', t['mismatches'])}" for t in report["targets"]]
        raise UserError(
            f"model {model.meta.name!r}: not proved: {'; '.join(report['problems'] or wrong)}"
        )
    rows = [_row(target, "here") for target in report["targets"]]
    for row in rows:
        if row["target"] == "onnx":
            row["ns_per_decision"] = onnx_ns(model)
    rows += bench_rows(model.meta.name, bench, {row["target"] for row in rows})
    found = json.loads(proof.certificate)
    machine = {key: found.get(key, "") for key in ("machine", "cpu", "system", "release")}
    return {
        "certificate.json": proof.certificate,
        "costs.json": json_file({"rows": rows, **machine}),
        "costs.md": table(rows, machine["cpu"]).encode(),
    }


def onnx_ns(model: ZooModel) -> float:
    """Time of one decision in ONNX Runtime with one thread, in ns: the median of rounds."""
    import numpy as np

    row = np.array(model.read_json("vectors.json")["values"][:1], dtype=np.float64)
    model.answers(row)
    spent = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        for _ in range(CALLS):
            model.answers(row)
        spent.append((time.perf_counter_ns() - begun) / CALLS)
    return float(round(statistics.median(spent)))


def bench_rows(name: str, bench: Path, but: set[str]) -> list[dict[str, Any]]:
    """Results of ``make bench`` for this model on other targets."""
    try:
        rows = json.loads(bench.read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError):
        return []
    return [
        _row(row, "bench")
        for row in rows
        if row["model"] == name and row["target"] not in but and row.get("ok")
    ]


def table(rows: Sequence[Mapping[str, Any]], cpu: str) -> str:
    """Content of ``costs.md``."""
    lines: list[str] = [
        HEADING,
        "Proved to answer as the model on every vector. Time of one decision of one row; *here*:",
        f"by the machine that released this entry ({cpu or 'CPU unknown'}), *bench*:",
        "by `make bench` on quiet cores.",
        "",
        "| target | vectors | time | bytes | stack | measured |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [
            row["target"],
            str(row["vectors"]),
            spent(row.get("ns_per_decision")),
            *(str(row.get(key) or "–") for key in ("object_bytes", "stack_bytes")),
            row["measured"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def spent(ns: float | None) -> str:
    """A time for people: ``18 ns``, ``4.2 µs``, ``2.3 ms``, or a dash."""
    if ns is None:
        return "–"
    for limit, unit in ((1e3, "ns"), (1e6, "µs")):
        if ns < limit:
            return f"{ns / limit * 1e3:.3g} {unit}"
    return f"{ns / 1e6:.3g} ms"


KEPT = ("vectors", "ns_per_decision", "object_bytes", "stack_bytes", "verified_insns")


def _row(report: Mapping[str, Any], measured: str) -> dict[str, Any]:
    row: dict[str, Any] = {"target": report["target"], "measured": measured}
    return row | {key: report[key] for key in KEPT if report.get(key) is not None}
