"""docs/deploy.md, command by command, as its reader would."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from export.bpf.build import why_not
from models.sbd.store import names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh ?(\w*)\n(.*?)^```$", PAGE, re.M | re.S)


def reason_to_skip(mark):
    if mark == "kernel":
        return why_not()
    if mark == "headers" and not list(Path("/usr/src").glob("linux-headers-*-amd64")):
        return "no kernel headers here: apt-get install linux-headers-amd64"
    return None


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What the commands see of a checkout, with a build folder of its own."""
    folder = tmp_path_factory.mktemp("deploy")
    for name in ("data", "models", "params.yaml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.mark.xdist_group("live")
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(checkout, number):
    mark, commands = BLOCKS[number]
    if reason := reason_to_skip(mark):
        pytest.skip(reason)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", commands],
        cwd=checkout, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{commands}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    if "build/detect <" in commands:
        verdicts = [line.split()[1] for line in done.stdout.splitlines()]
        assert verdicts
        assert verdicts.count("SB") > len(verdicts) / 2, "the log is one of a shared bottleneck"


def test_page_names_models_that_exist():
    exported = set(re.findall(r"cczoo export ([\w-]+) -t", PAGE))
    assert exported <= {*names(), "nuwa-tanh"}
    assert shutil.which("bash")
