"""Exports a table file that a kernel module reads, its C reader and the module around it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from export.bundle.certificate import compared
from export.bundle.manifest import Bundle
from export.ir import Form
from export.params import Options, VerifyParams
from export.render import render
from export.source import Source
from export.table_file import read, refusal, write
from export.toolchain.harness import (
    RUNTIME,
    SANITIZER_FLAGS,
    CannotRun,
    build,
    compile_once,
    find_compiler,
    run_command,
)
from export.toolchain.kernel_module import compile_module
from export.toolchain.sanitize import no_sanitizers, sanitized
from export.vectors import Vectors, timing_rows

SUMMARY = "file that a kernel module reads, so that an update needs no compiler; module, C reader"
READER = ("cczoo_table.h", "cczoo_table.c")
OWN_READERS = {
    "trees": ("cczoo_scores.h", "cczoo_scores.c"),
    "mlp": ("cczoo_network.h", "cczoo_network.c"),
}
"""Form's kind -> its reader, which takes in :data:`READER`."""
_MACROS = {"trees": "SCORES", "mlp": "NETWORK"}
"""Form's kind -> what tells ``table_host.c`` and ``table_damage.c`` its own reader."""
DAMAGE_BYTES = 1 << 26
"""Bytes that may be read while damaged files are tried; a second or so."""
CC_NAME_BYTES = 15
"""TCP_CA_NAME_MAX without its end."""

_UNIT = """
#include "model.h"
#include "cczoo_table.c"
struct cczoo_table loaded;
int model_answer(const int32_t *f, int64_t *scores);
int model_classify(const int32_t *f);
int model_answer(const int32_t *f, int64_t *scores)
{ scores[0] = cczoo_table_score(&loaded, f); return cczoo_table_classify(&loaded, f); }
int model_classify(const int32_t *f) { return cczoo_table_classify(&loaded, f); }
"""
_OWN_UNITS = {
    "trees": """
#include "cczoo_scores.h"
#include "cczoo_scores.c"
struct cczoo_scores loaded;
static int64_t unseen[CCZOO_SCORES_MAX_LABELS];
int model_answer(const int32_t *f, int64_t *scores);
int model_classify(const int32_t *f);
int model_answer(const int32_t *f, int64_t *scores)
{ return cczoo_scores_classify(&loaded, f, scores); }
int model_classify(const int32_t *f) { return cczoo_scores_classify(&loaded, f, unseen); }
""",
    "mlp": """
#include "cczoo_network.h"
#include "cczoo_network.c"
struct cczoo_network loaded;
int32_t *scratch;
static int64_t unseen[CCZOO_NETWORK_MAX_LABELS];
int model_answer(const int32_t *f, int64_t *scores);
int model_classify(const int32_t *f);
int model_answer(const int32_t *f, int64_t *scores)
{ return cczoo_network_classify(&loaded, f, scratch, scores); }
int model_classify(const int32_t *f)
{ return cczoo_network_classify(&loaded, f, scratch, unseen); }
""",
}
"""Form's kind -> the driver's functions around its own reader."""


def refuses(form: Form) -> str:
    """Why the file can't carry a form; empty if it can."""
    return refusal(form)


def emit(source: Source, options: Options) -> dict[str, str | bytes]:
    """``<identifier>.cct``, its reader, and a module that is built by ``Kbuild``.

    The module is a congestion control that obeys one of two classes, so trees and networks with a
    score for each label come without it.
    """
    form = source.form
    if form is None:
        raise ValueError("the table target needs a form")
    name = source.identifier
    readers = _readers(form)
    made: dict[str, str | bytes] = {
        f"{name}.cct": write(form, source.schema_hash),
        **{file: (RUNTIME / file).read_text() for file in readers},
    }
    if not _has_module(form):
        return made
    module = render(
        "kmod.c.j2",
        source=source,
        network=form.kind == "mlp",
        schema_rows=_rows(source.schema_hash),
        cc_name=name if len(name) <= CC_NAME_BYTES else f"{name[:10]}_{source.model_hash[:4]}",
    )
    return made | {
        f"{name}_kmod.c": module,
        f"{name}_kmod.h": render("kmod.h.j2", source=source, form=form),
        "Kbuild": render("kmod_kbuild.j2", source=source, reader=Path(readers[-1]).stem),
    }


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Read it back, run every vector through the C reader, damage it, compile the module."""
    form = bundle.form
    if form is None or vectors is None:
        raise CannotRun("the bundle has no form to compare with")
    files = {path.name: path for path in bundle.files("table")}
    table = files[f"{bundle.identifier}.cct"]
    schema = bundle.manifest["schema_hash"]
    if read(table.read_bytes(), form.features, form.labels, schema, table.name) != form:
        raise CannotRun(f"{table.name} isn't the bundle's model")
    how: dict[str, Any] = {
        "unit": _OWN_UNITS.get(form.kind, _UNIT),
        "beside": [files[name] for name in _readers(form) if name in files],
        "hosted": _host(table, bundle),
        "outputs": form.outputs,
    }
    made = (files[READER[0]], bundle.identifier, work, params.timeout_s)
    program = build(*made, **how)
    answers = program.run(vectors.x, params.timeout_s)
    report = compared(form, vectors.x, answers, vectors.counts)
    damaged = _damage(table, files, form, work, params.timeout_s)
    report["mismatches"] += damaged["accepted"]
    return {
        **report,
        "compiler": program.compiler,
        "flags": program.flags,
        "ns_per_decision": program.ns_per_decision(
            timing_rows(form, params.seed), params.timeout_s
        ),
        "file_bytes": table.stat().st_size,
        "object_bytes": program.object_bytes,
        "stack_bytes": program.stack_bytes,
        "sanitized": sanitized(*made, vectors.x, answers, **how),
        "damaged": damaged,
        **({"kernel_module": _module(files, work, params.timeout_s)} if _has_module(form) else {}),
    }


def _readers(form: Form) -> tuple[str, ...]:
    """Files of its reader; the last one takes in what it needs of the others."""
    return (*READER, *OWN_READERS.get(form.kind, ()))


def _has_module(form: Form) -> bool:
    """Whether one score says which of two classes it is, as the module takes it."""
    return form.outputs < len(form.labels)


def _module(files: dict[str, Path], work: Path, timeout_s: float) -> Any:
    """What compiling the module gave."""
    module = work / "kernel_module"
    module.mkdir()
    for path in files.values():
        shutil.copy(path, module)
    return compile_module(module, timeout_s)


def _host(table: Path, bundle: Bundle) -> str:
    """C that loads the file before the driver starts."""
    schema = ", ".join(_rows(bundle.manifest["schema_hash"]))
    return (
        f"#define {_MACROS.get(bundle.manifest['kind'], 'TABLE')}\n"
        f"#define LABELS {len(bundle.manifest['labels'])}\n"
        f"#define TABLE_FILE {json.dumps(str(table.resolve()))}\n"
        f"#define FEATURES {len(bundle.features)}\n"
        f"#define SCHEMA_HASH {schema}\n" + (RUNTIME / "table_host.c").read_text()
    )


def _damage(
    table: Path, files: dict[str, Path], form: Form, work: Path, timeout_s: float
) -> dict[str, int]:
    """How many damaged copies of the file the C reader accepts, under sanitizers if possible."""
    executable = work / "table_damage"
    flags = ["-O1"] if no_sanitizers(work, timeout_s) else SANITIZER_FLAGS
    reader = _readers(form)[-1]
    sources = [files[reader], RUNTIME / "table_damage.c"]
    included = [files[name] for name in _readers(form) if name != reader]
    # Nothing of this one file: the program is compiled once for all of its kind.
    command = [*find_compiler(), *flags, f"-D{_MACROS.get(form.kind, 'TABLE')}"]
    compile_once(command, sources, executable, timeout_s, included)
    asked = (len(form.features), len(form.labels), DAMAGE_BYTES)
    done = run_command([str(executable), str(table), *map(str, asked)], timeout_s)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise CannotRun(f"damaged copies of {table.name}: {' '.join(lines[:3])}")
    return dict(
        zip(("inverted", "truncated", "accepted"), map(int, done.stdout.split()), strict=True)
    )


def _rows(hexadecimal: str) -> list[str]:
    """Bytes of a hash in C, eight a row."""
    pairs = [f"0x{byte:02x}" for byte in bytes.fromhex(hexadecimal)]
    return [", ".join(pairs[i : i + 8]) for i in range(0, len(pairs), 8)]
