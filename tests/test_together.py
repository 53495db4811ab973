"""Tests of a group run in one worker: those that share a name, and those that share a fixture."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

NAMED = """
import time

import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("i", range(8))
def test_it(i):
    time.sleep(0.05)
"""
SHARED = """
import time

import pytest

@pytest.fixture(scope="module")
def costly():
    time.sleep(0.3)

@pytest.mark.parametrize("i", range(8))
def test_it(i, costly):
    time.sleep(0.05)
"""


def test_groups_are_kept_together(tmp_path):
    """Some releases of pytest and xdist together leave them apart, and nothing else would tell."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    shutil.copy(Path(__file__).with_name("allowed_skips.txt"), tmp_path)
    for name, text in {"named": NAMED, "shared": SHARED}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-v",
         "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    for name in ("named", "shared"):
        workers = re.findall(rf"\[(gw\d)\].*PASSED.*test_{name}\.py::test_it", done.stdout)
        assert len(workers) == 8, done.stdout
        assert len(set(workers)) == 1, done.stdout
