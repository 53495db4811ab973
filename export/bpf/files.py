"""Form -> eBPF sources."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from data.errors import UserError
from export.bpf.nodes import VERSION, capacity, nodes_file
from export.forms.forest import Forest
from export.forms.tree import Tree
from export.ir import Form
from export.render import render
from export.source import Source

Way = Literal["if-else", "map"]

OPS = "cczoo_sbd"
"""Name of the congestion control, 15 characters at most."""
STRAIGHT: dict[str, str] = {
    "tree": "c_if_else.j2",
    "linear": "c_linear.j2",
    "rbf": "bpf_rbf.j2",
}
"""Form's kind -> template of its scoring as code."""
WALKED = frozenset({"tree", "forest"})
"""Kinds of forms that a map can hold."""
MAX_IF_ELSE_NODES = 8192
"""Jumps of BPF are 16 bits wide, and the verifier follows a million instructions at most."""
BOTTLENECK = ("NSB", "SB")
"""Labels of the models that the congestion control can obey."""


def ways(form: Form, asked: str, name: str) -> list[Way]:
    """How a form is written.

    Parameters
    ----------
    form : Form
    asked : {"if-else", "map", "both"}
        ``both`` leaves out what the form can't be.
    name : str
        The model's, for messages.

    Raises
    ------
    UserError
        When it can't be written as asked.
    """
    refused: dict[Way, str] = {}
    if form.kind not in STRAIGHT:
        refused["if-else"] = f"the verifier doesn't take a {form.kind} as if/else: use bpf=map"
    elif isinstance(form, Tree) and len(form.nodes) > MAX_IF_ELSE_NODES:
        refused["if-else"] = (
            f"{len(form.nodes)} nodes, the verifier takes {MAX_IF_ELSE_NODES} as if/else: "
            "use bpf=map"
        )
    if form.kind not in WALKED:
        refused["map"] = f"a {form.kind} has no nodes to put into a map: use bpf=if-else"
    if asked in refused:
        raise UserError(f"{name}: {refused[asked]}")
    known: tuple[Way, ...] = ("if-else", "map")
    return [way for way in known if asked in (way, "both") and way not in refused]


def header_name(identifier: str, way: Way) -> str:
    """File that defines ``<identifier>_classify``."""
    return f"{identifier}{'_map' if way == 'map' else ''}.bpf.h"


def sources(source: Source, asked: str) -> dict[str, str | bytes]:
    """All files of the target.

    Raises
    ------
    UserError
        See :func:`ways`.
    """
    form = source.form
    if form is None:
        raise ValueError("the BPF target needs a form")
    name = source.identifier
    chosen = ways(form, asked, source.name)
    common = {
        "source": source,
        "form": form,
        "headers": [header_name(name, way) for way in chosen],
        "ops": OPS,
    }
    made: dict[str, str | bytes] = {}
    if "if-else" in chosen:
        text = render("c.h.j2", **common, scoring=STRAIGHT[form.kind])
        made[header_name(name, "if-else")] = text
    if "map" in chosen:
        assert isinstance(form, Tree | Forest)
        made[header_name(name, "map")] = render("bpf_map.h.j2", **common, scoring="bpf_walk.j2")
        made[f"{name}_table.h"] = render("bpf_table.h.j2", **common, capacity=capacity(form))
        schema = [", ".join(hex(b) for b in row) for row in _rows_of(source.schema_hash)]
        made[f"{name}_load.c"] = render("bpf_load.c.j2", **common, schema=schema, version=VERSION)
        made[f"{name}.nodes.bin"] = nodes_file(form, source.schema_hash)
    made[f"{name}_test.bpf.c"] = render("bpf_test.bpf.c.j2", **common)
    if form.labels == BOTTLENECK:
        made[f"{name}_cc.h"] = render("bpf_cc.h.j2", **common)
        made[f"{name}_cc.bpf.c"] = render("bpf_cc.bpf.c.j2", **common)
        made["lia.h"] = files("data.lab").joinpath("native/lia.h").read_text(encoding="utf-8")
    return made


def _rows_of(digest: str) -> list[bytes]:
    whole = bytes.fromhex(digest)
    return [whole[i : i + 8] for i in range(0, len(whole), 8)]
