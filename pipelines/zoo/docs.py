"""``cczoo zoo docs``: write the zoo's tables in the documents from its entries."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.files import write_text
from pipelines.output import print_json

if TYPE_CHECKING:
    from models.store import ZooModel

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/zoo.md")
BEGIN = "<!-- zoo:{name} (made by cczoo zoo docs) -->"
END = "<!-- zoo:end -->"
PROTOCOLS = (
    ("within", "sites"),
    ("unseen", "Table 6"),
    ("mixed", "randomised"),
    ("family", "left-out families"),
)
"""Protocol of the metrics -> column of the table."""


def run(args: argparse.Namespace) -> int:
    """Write the tables; with ``--check`` write nothing and return 1 if one isn't up to date."""
    from models import store

    stale = refresh(args.zoo or store.ZOO, check=args.check)
    if args.json:
        print_json({"checked": list(DOCUMENTS), "stale": stale, "written": not args.check})
    elif stale:
        state = "not as the zoo is: run `cczoo zoo docs`" if args.check else "written"
        print(f"{', '.join(stale)}: {state}", file=sys.stderr if args.check else sys.stdout)
    else:
        print("the documents' tables are as the zoo is")
    return 1 if args.check and stale else 0


def refresh(zoo: Path, *, check: bool = False) -> list[str]:
    """Write the documents' tables; returns the documents that weren't up to date."""
    from models import store

    models = [store.load(name, zoo) for name in store.names(zoo)]
    stale = []
    for document in DOCUMENTS:
        path = ROOT / document
        before = path.read_text(encoding="utf-8")
        after = filled(before, models, document)
        if before == after:
            continue
        stale.append(document)
        if not check:
            write_text(path, after)
    return stale


def filled(text: str, models: Sequence[ZooModel], where: str) -> str:
    """A document with its tables made anew.

    Raises
    ------
    UserError
        When a marker is missing or names no table.
    """
    lines: list[str] = []
    rest = text
    found = False
    for name, make in TABLES.items():
        begin = BEGIN.format(name=name)
        before, mark, after = rest.partition(begin)
        if not mark:
            continue
        _, end, rest = after.partition(END)
        if not end:
            raise UserError(f"{where}: no {END} after {begin}: put it back")
        found = True
        lines.append(f"{before}{begin}\n{make(models)}{END}")
    if not found:
        raise UserError(f"{where}: no marker such as {BEGIN.format(name='short')}: put it back")
    return "".join(lines) + rest


def short(models: Sequence[ZooModel]) -> str:
    """Table of the README: name, kind, accuracy at the sites and under conditions left out."""
    rows = [["model", "kind", "sites", "left-out families", "in C"]]
    for model in models:
        metrics = model.read_json("metrics.json")
        rows.append(
            [
                f"[`{model.meta.name}`](models/zoo/{model.meta.name}/card.md)",
                model.meta.kind,
                _mean(metrics, "within"),
                _mean(metrics, "family"),
                _cost(model, "c"),
            ]
        )
    return _markdown(rows)


def whole(models: Sequence[ZooModel]) -> str:
    """Table of docs/zoo.md: accuracies with intervals, targets and costs."""
    rows = [["model", *(title for _, title in PROTOCOLS), "C", "ONNX", "targets"]]
    for model in models:
        from export.targets import targets_of

        metrics = model.read_json("metrics.json")
        rows.append(
            [
                f"[`{model.meta.name}`](../models/zoo/{model.meta.name}/card.md)",
                *(_interval(metrics, protocol) for protocol, _ in PROTOCOLS),
                _cost(model, "c"),
                _cost(model, "onnx"),
                ", ".join(targets_of(model)),
            ]
        )
    return _markdown(rows)


TABLES = {"short": short, "whole": whole}
"""Name in the marker -> function that makes the table."""


def _mean(metrics: Any, protocol: str) -> str:
    value = metrics.get(protocol, {}).get("window", {}).get("mean")
    return "–" if value is None else f"{value:.3f}"


def _interval(metrics: Any, protocol: str) -> str:
    from models.card import interval

    return interval(metrics.get(protocol, {}).get("window"))


def _cost(model: ZooModel, target: str) -> str:
    """Time of one decision, as measured when the entry was released."""
    from pipelines.zoo.certify import spent

    measured = model.beside("costs.json")
    for row in json.loads(measured)["rows"] if measured else []:
        if row["target"] == target:
            return spent(row.get("ns_per_decision"))
    return "–"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, f"|{' --- |' * len(rows[0])}")
    return "\n".join(lines) + "\n"
