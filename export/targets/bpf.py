"""Exports CO-RE eBPF: the model as code and as a table in a map, and a control that obeys it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from export.bpf.build import FLAGS, Workshop, clang, version
from export.bpf.files import WAYS, Way, header_name, refusals, sources
from export.bpf.nodes import mirrored, nodes_file
from export.bpf.run import Answers, register, run
from export.bundle.certificate import compared
from export.bundle.manifest import Bundle
from export.forms.forest import Forest
from export.forms.tree import Tree
from export.forms.trees import Trees
from export.ir import Form
from export.params import Options, VerifyParams
from export.render import c_name
from export.source import Source
from export.toolchain.harness import CannotRun
from export.vectors import Vectors, timing_rows

SUMMARY = "eBPF C that the kernel's verifier takes (--set bpf=if-else, map or both)"
CONFINABLE = False
"""No sandbox is around the kernel."""
TIMED_BYTES = 1 << 20
FIGURES = ("verified_insns", "stack_bytes", "jited_bytes", "xlated_bytes")


def refuses(form: Form) -> str:
    """Why neither code nor a map can hold a form."""
    refused = refusals(form)
    return "; ".join(refused.values()) if len(refused) == len(WAYS) else ""


def emit(source: Source, options: Options) -> dict[str, str | bytes]:
    """Sources, and the table's file if a map holds the model.

    ``<identifier>.bpf.h`` is the model as code, ``<identifier>_map.bpf.h`` walks through the table
    that ``<identifier>_load.c`` puts into a map from ``<identifier>.nodes.bin``; the programs
    ``<identifier>_test.bpf.c`` and ``<identifier>_cc.bpf.c`` include the first, or the second if
    there is no first or ``<IDENTIFIER>_IN_MAP`` is defined.
    """
    return sources(source, options.bpf)


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Run every vector inside the running kernel, compare, time; replace tables while it runs.

    The congestion control is registered, under a name of its own, and unregistered. Whatever is
    loaded ends with the processes that load it, even if they are killed: nothing is pinned.
    """
    if bundle.form is None or vectors is None:
        raise CannotRun("the bundle has no form to compare with")
    shop = Workshop(bundle.directory, work, params.timeout_s)
    names = {path.name for path in bundle.files("bpf")}
    ways = [way for way in WAYS if header_name(bundle.identifier, way) in names]
    parts = {way: _check_way(way, shop, bundle, vectors, params) for way in ways}
    if f"{bundle.identifier}_cc.bpf.c" in names:
        for way in ways:
            parts[way]["congestion_control"] = _register(way, shop, bundle, params)
    wrong = [p["first_mismatch"] for p in parts.values() if "first_mismatch" in p]
    return {
        # The figures are those of what a program gets that defines nothing.
        **parts[ways[0]],
        **({"first_mismatch": wrong[0]} if wrong else {}),
        "mismatches": sum(part["mismatches"] for part in parts.values()),
        "compiler": version(clang()),
        "flags": FLAGS,
        "kernel": platform.release(),
        "ways": parts,
    }


def _check_way(
    way: Way, shop: Workshop, bundle: Bundle, vectors: Vectors, params: VerifyParams
) -> dict[str, Any]:
    form, name = bundle.form, bundle.identifier
    assert form is not None
    # More would time the cache's misses on observations, of which a kernel has one at hand.
    timed = timing_rows(form, params.seed)[: TIMED_BYTES // (4 * len(form.features))]
    defines = {"TIMED_ROWS": str(len(timed))} | _defines(way, name)
    program = shop.program(f"{name}_test.bpf.c", f"{way}.o", defines)
    runner = shop.runtime("bpf_run")
    table: list[str | Path] = []
    other = None
    if way == "map":
        assert isinstance(form, Tree | Forest | Trees)
        other = mirrored(form)
        file = shop.work / "other.nodes.bin"
        file.write_bytes(nodes_file(other, bundle.manifest["schema_hash"]))
        loader = shop.host(bundle.directory / f"{name}_load.c", "load")
        table = [loader, f"{name}_models", bundle.directory / f"{name}.nodes.bin", file]
    answers = run(runner, program, vectors.x, timed, params.timeout_s, table, form.outputs)
    report = compared(form, vectors.x, answers.verdicts[0], vectors.counts) | _figures(
        answers, name
    )
    if other is not None:
        swapped = compared(other, vectors.x, answers.verdicts[1], vectors.counts)
        counts = {key: answers.figures[f"swap_{key}"] for key in ("first", "second", "mixed")}
        report["swap"] = {"mismatches": swapped["mismatches"], **counts}
        report["mismatches"] += swapped["mismatches"] + counts["mixed"]
    return report


def _figures(answers: Answers, name: str) -> dict[str, Any]:
    held = (f"{name}_model", f"{name}_models")
    model = [n for key, n in answers.map_bytes.items() if key in held or key.endswith(".rodata")]
    return {
        **{key: answers.figures[key] for key in FIGURES},
        "ns_per_decision": answers.ns_per_decision,
        "decide_ns": answers.figures["decide_ns"],
        "baseline_ns": answers.figures["baseline_ns"],
        "map_bytes": sum(model),
    }


def _register(way: Way, shop: Workshop, bundle: Bundle, params: VerifyParams) -> dict[str, int]:
    name = f"czv_{os.getpid()}"
    defines = {"CC_NAME": f'"{name}"'} | _defines(way, bundle.identifier)
    program = shop.program(f"{bundle.identifier}_cc.bpf.c", f"cc_{way}.o", defines)
    return register(shop.runtime("bpf_register"), program, name, params.timeout_s)


def _defines(way: Way, identifier: str) -> dict[str, str]:
    return {f"{c_name(identifier)}_IN_MAP": "1"} if way == "map" else {}
