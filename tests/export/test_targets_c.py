"""Compiled C against the meaning of the form."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_forms import SPECS, forests, trees

from export.forms.forest import Forest
from export.forms.linear import Linear
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.params import Options
from export.render import c_comment, c_int
from export.source import Source
from export.targets import emit
from export.toolchain.harness import SANITIZER_FLAGS, build
from export.vectors import make_vectors

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
NOTHING = np.zeros((0, 4), dtype=np.int64)
NO_VALUES = np.zeros((0, 4))


def source_of(form, name="a model"):
    return Source(
        name, "1", "test", form.kind, form.features, form.labels, 0.5, form, "", b"",
        NO_VALUES, np.zeros(0),
    )  # fmt: skip


def mismatches(form, work, layout="if-else", flags=None):
    """How many adversarial observations the compiled form answers differently."""
    files = emit("c", source_of(form), Options(layout=layout))
    (work / "a_model.h").write_bytes(files["a_model.h"])
    program = build(work / "a_model.h", "a_model", work, 120, flags=flags)
    x = make_vectors(form, NOTHING, 300, 5).x
    found, meant = program.run(x, 60), form.evaluate(x)
    return int(((found.classes != meant.classes) | (found.scores != meant.scores)).sum())


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(form=trees | forests)
@pytest.mark.parametrize("layout", ["if-else", "array"])
def test_any_form_compiles_without_a_warning_and_answers_the_same(layout, tmp_path, form):
    assert mismatches(form, tmp_path, layout) == 0


def test_extreme_weights(tmp_path):
    weights = (2**31 - 1, -(2**31) + 2, 0, 1)
    for bias, cut in ((-(2**62), 0), (2**62, 2**62 - 1), (0, -(2**63))):
        form = Linear(SPECS, ("NSB", "SB"), cut, weights, bias, 10)
        assert mismatches(form, tmp_path) == 0


@pytest.mark.parametrize("layout", ["if-else", "array"])
def test_sanitizers_find_nothing(layout, tmp_path):
    rng = np.random.default_rng(0)
    grown = tuple(_grown(rng, depth) for depth in (0, 1, 5, 9))
    form = Forest(SPECS, ("NSB", "SB"), 0, grown)
    assert mismatches(form, tmp_path, layout, SANITIZER_FLAGS) == 0


def test_hostile_texts_stay_in_their_comments(tmp_path):
    spec = SPECS[0].__class__("x", "ms */ int y;", 0.0, 9.0, 1, "", "/* a\nb\\ */ #error ??/")
    form = Tree((spec, *SPECS[1:]), ("*/ NO", "YES\n#error"), 3, Nodes((-1,), (3,), (0,)))
    assert mismatches(form, tmp_path) == 0


def test_no_floating_point_no_recursion_no_allocation(tmp_path):
    form = Forest(SPECS, ("NSB", "SB"), 0, (_grown(np.random.default_rng(1), 6),) * 3)
    for layout in ("if-else", "array"):
        text = emit("c", source_of(form), Options(layout=layout))["a_model.h"].decode()
        code = "".join(part.split("*/")[-1] for part in text.split("/*"))
        for word in ("float", "double", "malloc", "."):
            assert word not in code.replace("types.h", "").replace("stdint.h", ""), word


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-(2**31), "(-2147483647 - 1)"),
        (2**31 - 1, "2147483647"),
        (2**31, "2147483648LL"),
        (-(2**63), "(-9223372036854775807LL - 1)"),
        (-5, "-5"),
    ],
)
def test_c_integers(value, text):
    assert c_int(value) == text


def test_c_comments_cannot_be_left():
    for text in ("*/", "/*", "*/*/", "/*/", "**//", "a\\\nb"):
        written = c_comment(text)
        assert "*/" not in written
        assert "/*" not in written
        assert "\n" not in written
        assert "\\" not in written


def _grown(rng, depth):
    """A full random tree over small numbers, so that observations spread over it."""
    if depth == 0:
        return Nodes((-1,), (int(rng.integers(-(2**31), 2**31)),), (0,))
    left, right = _grown(rng, depth - 1), _grown(rng, depth - 1)
    turn = 1 + len(left)
    return Nodes(
        (int(rng.integers(4)), *left.feature, *right.feature),
        (int(rng.integers(-2e9, 2e9)), *left.value, *right.value),
        (
            turn,
            *(r + 1 if r else 0 for r in left.right),
            *(r + turn if r else 0 for r in right.right),
        ),
    )
