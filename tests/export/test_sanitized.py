"""What the sanitizers must find in generated C, and what they must let pass."""

import json
import shutil

import numpy as np
import pytest

from export.ir import Verdicts
from export.params import VerifyParams
from export.toolchain.harness import CannotRun, build
from export.toolchain.sanitize import sanitized
from export.verify import verify
from pipelines.cli import main

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
HEADER = """
#include <stdint.h>
static const int32_t table[] = { 3, 1, 4, 1 };
static inline int32_t m_score(const int32_t *x) { return %s; }
static inline int m_classify(const int32_t *x) { return m_score(x) > 2; }
"""
FOUR = np.array([[0], [3], [1], [2]], dtype=np.int64)


def findings(score, x, work):
    header = work / "m.h"
    header.write_text(HEADER % score)
    answers = build(header, "m", work, 60).run(x, 60)
    return sanitized(header, "m", work, 60, x, answers)


@pytest.mark.parametrize(
    ("score", "odd", "said"),
    [
        ("table[x[0]]", 4, "out of bounds"),
        ("table[1] + x[0]", 2**31 - 1, "signed integer overflow"),
        ("1 << x[0]", 32, "shift exponent"),
        ("x[x[0] * 1000]", 1, "heap-buffer-overflow"),
    ],
)
def test_a_finding_fails(score, odd, said, tmp_path):
    (tmp_path / "a").mkdir()
    assert findings(score, FOUR[:1], tmp_path / "a") == {"vectors": 1, "findings": 0}
    with pytest.raises(CannotRun, match=said):
        findings(score, np.array([[odd]], dtype=np.int64), tmp_path)


def test_an_answer_that_depends_on_the_compiler_fails(tmp_path):
    header = tmp_path / "m.h"
    header.write_text(HEADER % "x[0]")
    other = Verdicts(np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64))
    with pytest.raises(CannotRun, match="other answers"):
        sanitized(header, "m", tmp_path, 60, FOUR, other)


def test_a_compiler_without_sanitizers_is_said_to_have_none(tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *sanitize*) echo "error: no libasan" >&2; exit 1;; esac\n'
        f'exec {shutil.which("gcc") or shutil.which("clang")} "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    report = findings("x[0]", FOUR, tmp_path)
    assert report["vectors"] == 0
    assert "no libasan" in report["why"]


@pytest.mark.parametrize("name", ["tree", "forest", "linear"])
def test_every_vector_of_a_bundle_goes_through_them(name, zoo, tmp_path):
    bundle = tmp_path / name
    assert main(["export", str(zoo / name), "-t", "c", "--out", str(bundle)]) == 0
    verify(bundle, VerifyParams(random=50))
    (c,) = json.loads((bundle / "certificate.json").read_text())["targets"]
    assert c["sanitized"] == {"vectors": c["vectors"], "findings": 0}
