"""Nothing that a model says of itself gets out of a comment, a string or a name in its code."""

import ast
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.params import Options
from export.render import c_comment, c_string
from export.source import Source
from export.targets import emit
from features.spec import Feature

ATTACKS = [
    "*/ int evil; /*", '"""\nimport os\n"""', "\\", "??/", '"); evil(); ("', "{{ 7 * 7 }}",
    "{% include 'x' %}", "a\nb", "\r#include <evil>", "\u2028evil", "\u202eevil", "'''", "%n%s",
    "*\\/ evil", "/\\*", "\x00", "\ud800", "// evil \\\n evil", "*/*/evil/*/*", "$(shell evil)",
]  # fmt: skip
TEXTS = st.sampled_from(ATTACKS) | st.text(alphabet="*/\\\"'?{}%#\n\r$(); ab\u2028\u202e")
LICENCE = "SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only"
ROOT = Path(__file__).parents[2]


def source_of(name, family, unit, doc, labels):
    features = tuple(Feature(f, unit, 0.0, 100.0, 10, doc, doc) for f in ("a", "b"))
    form = Tree(features, labels, 0, Nodes((0, -1, -1), (9, 0, 1), (2, 0, 0)))
    values = np.zeros((1, 2))
    return Source(
        name, "1", family, "tree", features, labels, 0.5, form, "", b"", values, values[:, 0]
    )


def tokens_of(text):
    """C without comments and strings."""
    return re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|//[^\n]*', " ", text, flags=re.S)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=TEXTS, family=TEXTS, unit=TEXTS, doc=TEXTS, label=TEXTS)
def test_words_stay_words_in_every_target(name, family, unit, doc, label):
    plain = source_of("m", "f", "us", "d", ("no", "yes"))
    hostile = source_of(name, family, unit, doc, ("no", label))
    for target in ("c", "python", "table", "bpf"):
        meant = emit(target, plain, Options())
        made = emit(target, hostile, Options())
        assert len(made) == len(meant)
        for (file, text), other in zip(made.items(), meant, strict=True):
            assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.]*", file), file
            if file.endswith(".py"):
                assert shape(text.decode()) == shape(meant[other].decode())
            elif file.endswith((".c", ".h")) and not file.startswith("cczoo_table"):
                assert "evil" not in re.sub(r"\w*_C_\w*", "", tokens_of(no_names(text, hostile)))
                assert tokens_of(text.decode()).count("{") == tokens_of(
                    meant[other].decode()
                ).count("{")


def no_names(text, source):
    """The text without the model's own names, which may contain any word."""
    name = source.identifier
    return text.decode().replace(name, "m").replace(name.upper(), "M")


def shape(text):
    """A module's syntax without its constants."""
    return [type(node).__name__ for node in ast.walk(ast.parse(text))]


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="*/\\\n\r?\"'%ab\u2028\u202e"))
def test_comments_and_strings_are_closed_by_us_alone(text):
    shown = c_comment(text)
    assert "*/" not in shown
    assert "/*" not in shown
    assert "\\" not in shown
    assert shown.isprintable()
    assert not set(c_string(text)) & {'"', "\\", "\n", "?", "%"}


@pytest.mark.parametrize("text", ATTACKS)
def test_documents_with_such_words_are_read_or_refused_in_a_line(text):
    form = source_of("m", "f", text, text, ("no", text)).form
    try:
        read = loads(dumps(form), "model.json")
    except UserError as refusal:
        said = str(refusal)
    else:
        assert read == form
        return
    assert said.isprintable()


@pytest.mark.parametrize("name", ["a\nb", 'x"""', "../x", "", "*/", "-rf", "a/b", "\u202ex"])
def test_a_model_of_such_a_name_is_not_exported(name):
    with pytest.raises(UserError, match="can't be exported: name"):
        bundle_files(source_of(name, "f", "us", "d", ("no", "yes")), ["c"], Options(), "test")


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc on this machine")
def test_hostile_words_compile_without_a_warning(tmp_path):
    words = [t for t in ATTACKS if "\ud800" not in t and "\x00" not in t]
    for i, text in enumerate(words):
        source = source_of(f"m{i}", text, text, text, ("no", f"{text} yes"))
        for name, content in emit("c", source, Options()).items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "all.c").write_text(
            "".join(f'#include "m{j}.h"\n' for j in range(i + 1)) + "int main(void) { return 0; }\n"
        )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    command = ["gcc", *flags, "-fsyntax-only", str(tmp_path / "all.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_emitted_source_says_its_licence():
    from features.smartsbd import FEATURES

    labels = ("NSB", "SB")
    form = Tree(FEATURES, labels, 0, Nodes((0, -1, -1), (9, 0, 1), (2, 0, 0)))
    nothing = np.zeros((0, len(FEATURES)))
    source = Source(
        "m", "1", "smartsbd", "tree", FEATURES, labels, 0.5, form, "", b"", nothing, nothing[:, 0]
    )
    seen = 0
    for target in ("c", "bpf", "table", "python", "lut"):
        for name, content in emit(target, source, Options(subflows=3, cells=8)).items():
            if name.endswith((".c", ".h", ".py")) or name == "Kbuild":
                assert LICENCE in content.decode().splitlines()[0], name
                seen += 1
    assert seen >= 14


def test_every_c_source_of_the_repository_says_its_licence():
    folders = ("export/runtime", "data/lab/native", "tests/fuzz", "benchmarks")
    paths = [p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".c", ".h")]
    paths += [ROOT / "data/lab/native/Makefile"]
    paths = [p for p in paths if "build" not in p.relative_to(ROOT).parts]
    assert len(paths) > 25
    for path in paths:
        assert LICENCE in path.read_text().splitlines()[0], path
    for path in (*paths, *(ROOT / "export/templates").glob("*/*")):
        text = path.read_text()
        assert "SPDX" not in text or LICENCE in text, path
        # The kernel knows no Apache: to it our objects say the other half of the choice.
        for said in re.findall(r'(?:SEC\("license"\) = |MODULE_LICENSE\()"([^"]*)"', text):
            assert said == "GPL", path
