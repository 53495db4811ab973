"""Writes a form as eBPF sources."""

from __future__ import annotations

import importlib
from typing import Any, Literal, cast

from data.errors import UserError
from export.bpf.nodes import MAGIC, SEVERAL_MAGIC, VERSION, capacity, nodes_file
from export.forms.forest import Forest
from export.forms.mlp import Mlp
from export.forms.program import Program
from export.forms.tree import Tree
from export.forms.trees import Trees
from export.ir import Form
from export.program.code import values
from export.render import render
from export.source import Source

Way = Literal["if-else", "map"]
WAYS: tuple[Way, ...] = ("if-else", "map")

CONTROLS: dict[tuple[str, ...], str] = {
    ("NSB", "SB"): "export.bpf.coupling",
}
"""A model's labels -> module with the congestion control that obeys such a model."""
STRAIGHT: dict[str, str] = {
    "tree": "c_if_else.j2",
    "trees": "c_trees_if_else.j2",
    "linear": "c_linear.j2",
    "lut": "c_lut.j2",
    "mlp": "bpf_mlp.j2",
    "rbf": "bpf_rbf.j2",
    "program": "bpf_program_steps.j2",
}
"""Form's kind -> template of its scoring as code."""
HEADERS = {"trees": "c_trees.h.j2", "mlp": "bpf_mlp.h.j2", "program": "bpf_program.h.j2"}
"""Form's kind -> the template of its header if it isn't the usual one."""
WALKED = frozenset({"tree", "forest", "trees"})
"""Kinds of forms that a map can hold."""
MAX_IF_ELSE_NODES = 8192
"""Jumps of BPF are 16 bits wide, and the verifier follows a million instructions at most."""
MAX_IF_ELSE_SCORES = 1 << 16
"""Distinct rows of leaves times their scores: the verifier goes on from each of them alone."""
MAX_STACK_SCORES = 32
"""Scores that may be added up on a BPF program's 512 bytes of stack."""
MAX_PROGRAM_SCORES = 48
"""Scores that a program of steps may put there: beside them stands little."""

MAX_STACK_NETWORK = 448
"""Bytes of a network on it, of 512: what else lies there takes up to 40."""


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
    refused = refusals(form)
    if asked in refused or len(refused) == len(WAYS):
        raise UserError(f"{name}: {refused.get(cast(Way, asked)) or '; '.join(refused.values())}")
    return [way for way in WAYS if asked in (way, "both") and way not in refused]


def refusals(form: Form) -> dict[Way, str]:
    """How a form can't be written, and why."""
    refused: dict[Way, str] = {}
    if form.kind not in STRAIGHT:
        refused["if-else"] = f"the verifier doesn't take a {form.kind} as if/else: use bpf=map"
    elif isinstance(form, Tree) and len(form.nodes) > MAX_IF_ELSE_NODES:
        refused["if-else"] = (
            f"{len(form.nodes)} nodes, the verifier takes {MAX_IF_ELSE_NODES} as if/else: "
            "use bpf=map"
        )
    if isinstance(form, Trees):
        refused |= _refused(form)
    if isinstance(form, Mlp) and (size := network_bytes(form)) > MAX_STACK_NETWORK:
        refused["if-else"] = (
            f"its layers and scores take {size} bytes of a BPF program's stack, "
            f"{MAX_STACK_NETWORK} do: narrow its layers, or have fewer features"
        )
    if isinstance(form, Program) and form.outputs > MAX_PROGRAM_SCORES:
        refused["if-else"] = (
            f"{form.outputs} scores don't fit a BPF program's stack, {MAX_PROGRAM_SCORES} do"
        )
    if form.kind not in WALKED:
        refused["map"] = f"a {form.kind} has no nodes to put into a map: use bpf=if-else"
    return refused


def _refused(form: Trees) -> dict[Way, str]:
    refused: dict[Way, str] = {}
    nodes, scores = sum(map(len, form.trees)), len(form.rows) * form.outputs
    if len(form.trees) > 1 or nodes > MAX_IF_ELSE_NODES or scores > MAX_IF_ELSE_SCORES:
        refused["if-else"] = (
            f"{len(form.trees)} trees, {nodes} nodes and {scores} scores in leaves: the verifier "
            f"takes one tree, {MAX_IF_ELSE_NODES} and {MAX_IF_ELSE_SCORES} as if/else: use bpf=map"
        )
    if form.outputs > MAX_STACK_SCORES:
        refused["map"] = (
            f"{form.outputs} scores don't fit a BPF program's stack, {MAX_STACK_SCORES} do: "
            "use bpf=if-else"
        )
    return refused


def buffers(form: Mlp) -> tuple[int, int]:
    """Numbers in the two buffers that layers read and write in turns."""
    widths = [len(layer.weights[0]) for layer in form.layers]
    return max(widths[::2]), max(widths[1::2], default=1)


def network_bytes(form: Mlp) -> int:
    """Bytes of stack for a network's layers and scores, and for its control's observation."""
    scores = 8 * form.outputs + (16 if form.outputs > 1 else 0)
    observed = 4 * len(form.features) if form.labels in CONTROLS else 0
    return 4 * sum(buffers(form)) + 8 + scores + observed


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
    common: dict[str, Any] = {
        "source": source,
        "form": form,
        "headers": [header_name(name, way) for way in chosen],
    }
    made: dict[str, str | bytes] = {}
    if isinstance(form, Program):
        common |= values(form)
    if isinstance(form, Mlp):
        common["buffers"] = buffers(form)
    if "if-else" in chosen:
        header = HEADERS.get(form.kind, "c.h.j2")
        text = render(header, **common, scoring=STRAIGHT[form.kind])
        made[header_name(name, "if-else")] = text
    if "map" in chosen:
        assert isinstance(form, Tree | Forest | Trees)
        several = isinstance(form, Trees)
        walk = (
            ("bpf_several_map.h.j2", "bpf_several.j2")
            if several
            else ("bpf_map.h.j2", "bpf_walk.j2")
        )
        made[header_name(name, "map")] = render(walk[0], **common, scoring=walk[1])
        common["capacity"] = capacity(form)
        made[f"{name}_table.h"] = render("bpf_table.h.j2", **common)
        made[f"{name}_load.c"] = render(
            "bpf_load.c.j2",
            **common,
            schema=[", ".join(hex(b) for b in row) for row in _rows_of(source.schema_hash)],
            version=VERSION,
            magic=(SEVERAL_MAGIC if several else MAGIC).decode(),
        )
        made[f"{name}.nodes.bin"] = nodes_file(form, source.schema_hash)
    made[f"{name}_test.bpf.c"] = render("bpf_test.bpf.c.j2", **common)
    # Some programs take as long as an ACK's way through the stack, and remember a sequence.
    if form.labels in CONTROLS and not isinstance(form, Trees | Program):
        made |= importlib.import_module(CONTROLS[form.labels]).sources(source, common)
    return made


def _rows_of(digest: str) -> list[bytes]:
    whole = bytes.fromhex(digest)
    return [whole[i : i + 8] for i in range(0, len(whole), 8)]
