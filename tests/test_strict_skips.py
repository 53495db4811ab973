"""The list of accepted skips is kept to, with xdist and without."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SUITE = """
import pytest
@pytest.mark.skip(reason="{reason}")
def test_one(): ...
def test_two(): ...
"""


@pytest.fixture
def suite(tmp_path):
    for name in ("conftest.py", "allowed_skips.txt"):
        (tmp_path / name).write_bytes((HERE / name).read_bytes())

    def run(reason, *options, ci=""):
        (tmp_path / "test_some.py").write_text(SUITE.format(reason=reason))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        return subprocess.run(command, cwd=tmp_path, env=environment | {"CI": ci}, text=True,
                              capture_output=True, check=False)  # fmt: skip

    return run


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_skip_that_nobody_accepted_fails_ci(suite, options):
    done = suite("felt like it", *options, ci="true")
    assert done.returncode == 1
    assert "test_some.py::test_one: felt like it" in done.stdout


def test_elsewhere_it_does_not(suite):
    assert suite("felt like it").returncode == 0
    assert suite("felt like it", "--strict-skips").returncode == 1


def test_an_accepted_reason_passes(suite):
    assert suite("auto-sklearn isn't installed: make automl", ci="true").returncode == 0


def test_tools_are_excused_for_those_alone_who_cannot_install_them():
    from tests.conftest import ALLOWED, allowed

    text = ALLOWED.read_text(encoding="utf-8")
    for reason in ("clang-14 not found", "no C compiler on this machine", "needs root"):
        assert not any(p.search(reason) for p in allowed(True, text))
        assert any(p.search(reason) for p in allowed(False, text))
    rows = [row for row in text.splitlines() if not row.startswith("#")]
    assert all(re.fullmatch(r"(any|user)\t[^\t]+\t[^\t]+", row) for row in rows)
