"""Export every model of the zoo to every target that can carry it, and prove each target."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from pipelines.output import print_json, progress


def run(args: argparse.Namespace) -> int:
    """Run ``cczoo zoo prove``; returns 1 if anything differs from its model."""
    from export.functions import FUNCTIONS
    from models.store import ZOO, folders

    everything = dict.fromkeys([*folders(args.zoo or ZOO), *sorted(FUNCTIONS)])
    chosen = [args.model] if args.model else list(everything)
    rows: list[dict[str, Any]] = []
    for name in progress(chosen, "proving"):
        rows += prove(name, args.target)
    ok = all(row["ok"] is not False for row in rows)
    if args.json:
        print_json({"ok": ok, "rows": rows})
    else:
        _print(rows)
    return 0 if ok else 1


def prove(name: str, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Export one model to all targets that can carry it and prove each target.

    Parameters
    ----------
    name : str
        The model, as ``cczoo export`` takes it.
    only : sequence of str
        Targets to restrict to; all by default.

    Returns
    -------
    list of dict
        Per target ``model, target, ok`` (None, with ``why``, if it can't be run on this machine),
        ``vectors, mismatches`` and the certificate's costs if it has them.
    """
    from export import proof
    from export.params import Options
    from export.targets import fitting
    from pipelines.sources import open_source

    source = open_source(name, Options())
    targets = [t for t in fitting(source) if not only or t in only]
    if not targets:
        return []
    report = proof.prove(source, targets, f"cczoo export {name}").report
    return [_row(name, target) for target in report["targets"]] or [
        {"model": name, "target": "", "ok": False, "why": "; ".join(report["problems"])}
    ]


COSTS = ("ns_per_decision", "object_bytes", "stack_bytes", "verified_insns", "largest_error")


def _row(name: str, report: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"model": name, "target": report["target"]}
    if "missing" in report:
        return row | {"ok": None, "why": report["missing"]}
    row |= {"vectors": report["vectors"], "mismatches": report["mismatches"]}
    if "error" in report:
        return row | {"ok": False, "why": report["error"]}
    row["ok"] = not report["mismatches"]
    return row | {key: report[key] for key in COSTS if report.get(key) is not None}


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    view = Table("model", "target", "vectors", "mismatches", "ns", "bytes", "")
    for row in rows:
        word = {True: "ok", False: "FAILED", None: "not here"}[row["ok"]]
        view.add_row(
            row["model"],
            row["target"],
            *(str(row.get(key, "")) for key in ("vectors", "mismatches")),
            f"{row['ns_per_decision']:.1f}" if "ns_per_decision" in row else "",
            str(row.get("object_bytes", "")),
            f"{word} {row.get('why', '')}".strip(),
        )
    Console().print(view)
