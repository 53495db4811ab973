"""Section "into the kernel": the exported tree, the cost of integers, and what was proved."""

from __future__ import annotations

from typing import Any

from data.errors import UserError
from models.store import ZooModel, load
from models.store import names as zoo_names
from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import Column, code, details, figure, paragraph, scroll, table
from pipelines.reporting.sbd import names, tree

DRAWN = "smartsbd-dt"
TOP_LEVELS = 4


def drawn(inputs: Inputs) -> str:
    """Drawing of the exported tree: its first levels, and, folded away, the whole of it."""
    from export.document import loads
    from export.forms.tree import Tree

    path = inputs.trained / DRAWN / "model.json"
    if not path.is_file():
        raise MissingInput(path, "cczoo train sbd fit")
    form = loads(path.read_text(encoding="utf-8"), str(path))
    if not isinstance(form, Tree):
        return paragraph(f"{DRAWN} has the form of a {form.kind}, which isn't drawn.")
    depth = max(form.nodes.depths)
    text = figure(
        tree.draw(form, TOP_LEVELS),
        f"First levels of {DRAWN}: {len(form.nodes)} nodes, {form.nodes.leaves} leaves, depth "
        f"{depth}. Yes goes left. Thresholds are the exported integers in the features' own units; "
        "leaves tell the probability of SB.",
        wide=True,
    )
    return text + details(f"The whole tree ({form.nodes.leaves} leaves)", scroll(tree.draw(form)))


def scaling(inputs: Inputs) -> str:
    """Table of the accuracy lost on the way from floating point to integers."""
    rows: list[list[Any]] = []
    for model in _models(inputs):
        loss = model.meta.quantization_error
        float_, integer = loss.get("accuracy_float"), loss.get("accuracy_integer")
        rows.append(
            [
                code(model.meta.name),
                model.meta.kind,
                len(model.meta.features),
                loss.get("rows"),
                loss.get("disagreements"),
                float_,
                integer,
                None if float_ is None or integer is None else f"{float_ - integer:+.4f}",
                _size(model),
            ]
        )
    columns = [
        Column("model", number=False),
        Column("form", number=False),
        Column("features"),
        Column("windows", group="integers against floats"),
        Column("other answer", group="integers against floats"),
        Column("accuracy, floats", group="integers against floats"),
        Column("accuracy, integers", group="integers against floats"),
        Column("lost", group="integers against floats"),
        Column("files, KB"),
    ]
    return table(
        columns, rows, "Models kept, and what scaling to integers changed on the training windows"
    ) + paragraph("Accuracies here are on training data: they compare forms, not models.")


def certificates(inputs: Inputs) -> str:
    """Table of the certificates that ``cczoo verify`` has written."""
    rows: list[list[Any]] = []
    problems = []
    for bundle, found in inputs.certificates().items():
        problems += [f"{bundle}: {problem}" for problem in found.get("problems", [])]
        for one in found["targets"]:
            origins = ", ".join(f"{k} {v}" for k, v in (one.get("by_origin") or {}).items())
            rows.append(
                [
                    code(bundle),
                    one["target"],
                    one["vectors"],
                    one["mismatches"],
                    one.get("error") or origins,
                    _number(one.get("ns_per_decision"), 1),
                    one.get("object_bytes"),
                    code(str(found.get("model_hash", ""))[:12]),
                    "verified" if found["ok"] else "FAILED",
                ]
            )
    columns = [
        Column("bundle", number=False),
        Column("target", number=False),
        Column("vectors"),
        Column("mismatches"),
        Column("vectors by origin", number=False),
        Column("ns per decision"),
        Column("object, bytes"),
        Column("model", number=False),
        Column("", number=False),
    ]
    text = table(
        columns,
        rows,
        "Certificates: the built code against the intermediate form on the same integers",
    )
    return text + "".join(paragraph(problem) for problem in problems)


def _models(inputs: Inputs) -> list[ZooModel]:
    listed = zoo_names(inputs.trained) if inputs.trained.is_dir() else []
    found = []
    for name in names.order(listed):
        try:
            found.append(load(name, inputs.trained))
        except UserError:
            continue  # `cczoo zoo verify` reports what is wrong with it
    if not found:
        raise MissingInput(inputs.trained, "cczoo train sbd fit")
    return found


def _size(model: ZooModel) -> str:
    size = sum((model.directory / name).stat().st_size for name in model.meta.files)
    return f"{size / 1024:.0f}"


def _number(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"
